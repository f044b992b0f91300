//! Programs of the machine that read what no library here reads: ffmpeg, tesseract, poppler's pdftoppm.
//!
//! Each runs as a child process under limits that it cannot lift, with files of a folder of its own as its only input and
//! output. Files of strangers never reach a program through its command line.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;

use super::{ExtractError, Result};

/// Environment variable by which a worker is told to become a program instead.
pub(super) const JOB: &str = "LOUPE_EXTRACT_TOOL";
/// What a worker answers that could not become the program.
pub(super) const NOT_STARTED: u8 = 127;
/// Bytes of a program's complaints that are kept.
const COMPLAINTS: usize = 16 << 10;

/// A program that an installation may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    Ffmpeg,
    Ffprobe,
    Tesseract,
    Pdftoppm,
}

impl Tool {
    pub fn program(self) -> &'static str {
        match self {
            Self::Ffmpeg => "ffmpeg",
            Self::Ffprobe => "ffprobe",
            Self::Tesseract => "tesseract",
            Self::Pdftoppm => "pdftoppm",
        }
    }

    /// The package of Debian that brings it.
    pub fn package(self) -> &'static str {
        match self {
            Self::Ffmpeg | Self::Ffprobe => "ffmpeg",
            Self::Tesseract => "tesseract-ocr",
            Self::Pdftoppm => "poppler-utils",
        }
    }

    /// Why what needs it cannot be done.
    pub fn missing(self) -> String {
        format!(
            "{} is not installed on this server: install the package {}",
            self.program(),
            self.package()
        )
    }
}

/// The programs that were found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tools {
    ffmpeg: Option<PathBuf>,
    ffprobe: Option<PathBuf>,
    tesseract: Option<PathBuf>,
    pdftoppm: Option<PathBuf>,
    /// What scans are written in, as tesseract names it, such as `eng+deu`; none = its own default, English.
    languages: Option<String>,
}

impl Tools {
    /// Looks for every program in the folders of `PATH`.
    pub fn find() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let find = |tool: Tool| {
            std::env::split_paths(&path)
                .map(|folder| folder.join(tool.program()))
                .find(|file| file.is_file())
        };
        Self {
            ffmpeg: find(Tool::Ffmpeg),
            ffprobe: find(Tool::Ffprobe),
            tesseract: find(Tool::Tesseract),
            pdftoppm: find(Tool::Pdftoppm),
            languages: None,
        }
    }

    /// Reads scans in these languages, as tesseract names them: `eng+deu`. Each needs its package.
    #[must_use]
    pub fn with_languages(mut self, languages: &str) -> Self {
        self.languages = (!languages.is_empty()).then(|| languages.to_owned());
        self
    }

    /// What scans are written in, if somebody said so.
    pub fn languages(&self) -> Option<&str> {
        self.languages.as_deref()
    }

    /// A machine without any of them.
    pub fn none() -> Self {
        Self::default()
    }

    fn path(&self, tool: Tool) -> Option<&PathBuf> {
        match tool {
            Tool::Ffmpeg => self.ffmpeg.as_ref(),
            Tool::Ffprobe => self.ffprobe.as_ref(),
            Tool::Tesseract => self.tesseract.as_ref(),
            Tool::Pdftoppm => self.pdftoppm.as_ref(),
        }
    }

    pub fn has(&self, tool: Tool) -> bool {
        self.path(tool).is_some()
    }

    /// Whether audio and video can be read.
    pub fn media(&self) -> std::result::Result<(), String> {
        [Tool::Ffmpeg, Tool::Ffprobe]
            .into_iter()
            .find(|tool| !self.has(*tool))
            .map_or(Ok(()), |tool| Err(tool.missing()))
    }
}

/// How much one run of a program may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub wall: Duration,
    pub cpu_seconds: u64,
    pub memory_bytes: u64,
    /// Of each file that it writes.
    pub file_bytes: u64,
}

/// A program with its arguments and limits, as the process that becomes it is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Command {
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
    pub cpu_seconds: u64,
    pub memory_bytes: u64,
    pub file_bytes: u64,
}

impl Command {
    /// In its folder, without the server's environment.
    pub fn std(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            // Each arena reserves addresses, which are limited; and one file shall not take every processor.
            .env("MALLOC_ARENA_MAX", "2")
            .env("OMP_THREAD_LIMIT", "1");
        command
    }
}

/// How a program that failed ended.
#[derive(Debug)]
pub(super) struct Complaint(String);

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Where programs run: directly (tests), or in processes that limit themselves first.
#[derive(Debug, Clone)]
pub(super) struct Runner {
    pub tools: Tools,
    /// The executable that becomes the program, with its arguments.
    pub through: Option<(PathBuf, Vec<OsString>)>,
}

impl Runner {
    /// Runs a program in `folder` to its end. `what` says for people what it does to the file.
    ///
    /// # Errors
    /// The program is missing, met a limit, or refuses the file.
    pub async fn run(
        &self,
        tool: Tool,
        arguments: Vec<String>,
        folder: &std::path::Path,
        limits: Limits,
        what: &str,
    ) -> Result<()> {
        let program = self
            .tools
            .path(tool)
            .ok_or_else(|| ExtractError::permanent(tool.missing()))?;
        let command = Command {
            program: program.clone(),
            arguments,
            folder: folder.to_owned(),
            cpu_seconds: limits.cpu_seconds,
            memory_bytes: limits.memory_bytes,
            file_bytes: limits.file_bytes,
        };
        let mut child = self.start(&command).map_err(|error| {
            ExtractError::transient(format!("{} cannot be started: {error}", tool.program()))
        })?;
        let mut pipe = child.stderr.take();
        let ended = tokio::time::timeout(limits.wall, async {
            let complaints = match &mut pipe {
                Some(pipe) => tail(pipe).await,
                None => String::new(),
            };
            (child.wait().await, complaints)
        })
        .await;
        let Ok((status, complaints)) = ended else {
            // Dropped: killed.
            return Err(ExtractError::resource(format!(
                "{what} took longer than {} seconds, which is the limit",
                limits.wall.as_secs()
            )));
        };
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(reason(tool, status, &complaints, limits, what)),
            Err(error) => Err(ExtractError::transient(format!("{what} failed: {error}"))),
        }
    }

    fn start(&self, command: &Command) -> std::io::Result<tokio::process::Child> {
        let mut start = match &self.through {
            None => tokio::process::Command::from(command.std()),
            Some((exe, arguments)) => {
                let mut start = tokio::process::Command::new(exe);
                start
                    .args(arguments)
                    .env_clear()
                    .env(JOB, serde_json::to_string(command)?);
                start
            }
        };
        start
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

/// The end of what a program says. Read to its end, so that it never waits for room.
async fn tail(pipe: &mut tokio::process::ChildStderr) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4 << 10];
    while let Ok(read) = pipe.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..read]);
        let over = kept.len().saturating_sub(COMPLAINTS);
        kept.drain(..over);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Words for a program that did not succeed.
fn reason(
    tool: Tool,
    status: ExitStatus,
    complaints: &str,
    limits: Limits,
    what: &str,
) -> ExtractError {
    use std::os::unix::process::ExitStatusExt;

    const SIGKILL: i32 = 9;
    const SIGXCPU: i32 = 24;
    const SIGXFSZ: i32 = 25;
    let program = tool.program();
    if status.code() == Some(i32::from(NOT_STARTED)) {
        return ExtractError::transient(format!("{program} cannot be started"));
    }
    match status.signal() {
        Some(SIGXCPU) => ExtractError::resource(format!(
            "{what} took more than {} seconds of processor time, which is the limit",
            limits.cpu_seconds
        )),
        Some(SIGXFSZ) => ExtractError::resource(format!(
            "{what} wrote more than {} MiB, which is the limit",
            limits.file_bytes >> 20
        )),
        Some(SIGKILL) => ExtractError::transient(format!(
            "{what} was stopped: {program} was killed from outside"
        )),
        Some(_) => ExtractError::permanent(format!(
            "{what} failed: the file is broken or made to do harm, {program} crashed on it"
        )),
        // ffmpeg catches the signal and ends by itself.
        None if complaints.contains("received signal 24") => ExtractError::resource(format!(
            "{what} took more than {} seconds of processor time, which is the limit",
            limits.cpu_seconds
        )),
        None => {
            let said = complaint(complaints);
            ExtractError::permanent(format!("{what} failed: {program} says: {said}"))
        }
    }
}

/// The last line in which a program says what is wrong, without names of our files.
fn complaint(complaints: &str) -> Complaint {
    let line = complaints
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("nothing");
    let line = line.rsplit_once("file:").map_or(line, |(_, rest)| rest);
    let line: String = line
        .chars()
        .filter(|character| !character.is_control())
        .take(160)
        .collect();
    Complaint(line)
}
