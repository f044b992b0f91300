//! The binary `loupe`.

use std::process::ExitCode;

fn main() -> ExitCode {
    loupe_server::command::main()
}
