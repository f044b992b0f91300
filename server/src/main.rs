//! The binary `loupe`.

use std::process::ExitCode;

/// A fifth of a search's CPU went to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    loupe_server::command::main()
}
