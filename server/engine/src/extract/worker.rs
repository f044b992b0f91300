//! The process that decodes what strangers sent: the same binary, started as `loupe extract-worker`.
//!
//! Jobs and answers travel over one socket, which is the worker's standard input: a frame is the length of a JSON
//! header (4 bytes), the length of a body (8 bytes), both big-endian, the header and the body. Standard output stays
//! free, so a library that prints cannot break the protocol. The worker limits itself before it reads the first byte.
//! A file on the disk does not travel: the header names it, the body is empty.

use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;
use loupe_wire::{Object, reading};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::decode::{Decoded, Picture, TextFile, Thumbnail, decode, page::WebPage};
use super::{Claim, ExtractError, Want, tools};
use crate::embed::Pixels;

/// Address space that a worker may add to what it starts with, beside a file of the disk.
pub const MEMORY_BYTES: u64 = 1 << 30;
/// Processor time of one job.
pub const CPU_SECONDS: u64 = 20;
/// Files a worker may hold open: its sockets, and what the C library opens.
const OPEN_FILES: u64 = 64;
/// Larger headers and bodies are refused by whoever reads them.
pub(super) const MAX_FRAME: usize = 256 << 20;
/// Deep structures are walked by recursion; the usual stack is too small for some honest files.
const STACK_BYTES: usize = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobHeader {
    pub want: Want,
    pub claim: Claim,
    /// Where the bytes are that are not in the body.
    pub file: Option<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnswerHeader {
    Text(TextFile),
    Page(Box<WebPage>),
    Picture(PictureHeader),
    Failed(ExtractError),
}

/// A picture without its bytes; the body holds the pixels, then the thumbnail, then the large copy.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PictureHeader {
    width: u32,
    height: u32,
    mime: String,
    small_width: u32,
    small_height: u32,
    thumbnail_type: Option<String>,
    thumbnail_bytes: usize,
    large: bool,
    dominant_color: String,
    exif: Object,
    further: usize,
}

/// Serves jobs until the parent closes the socket; or becomes the program that the parent names, under its limits.
pub fn main() -> ExitCode {
    if let Some(job) = std::env::var_os(tools::JOB) {
        let error = become_tool(&job);
        eprintln!("the program cannot be started: {error}");
        return ExitCode::from(tools::NOT_STARTED);
    }
    let reserved = match limit() {
        Ok(reserved) => reserved,
        Err(error) => {
            eprintln!("the extraction process cannot limit itself: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Panics become answers; their text would only fill the log with what strangers sent.
    std::panic::set_hook(Box::new(|_| {}));
    let served = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || serve(reserved))
        .map(std::thread::JoinHandle::join);
    match served {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Limits this process and replaces it. Returns only when that fails.
#[cfg(target_os = "linux")]
fn become_tool(job: &std::ffi::OsStr) -> std::io::Error {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Resource, Signal, set_parent_process_death_signal};

    let limited = || -> std::io::Result<tools::Command> {
        let job = job.to_str().ok_or(IoErrorKind::InvalidInput)?;
        let command: tools::Command = reading::from_str(job)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        lower(Resource::As, command.memory_bytes)?;
        lower(Resource::Cpu, command.cpu_seconds)?;
        lower(Resource::Fsize, command.file_bytes)?;
        lower(Resource::Nofile, OPEN_FILES)?;
        lower(Resource::Core, 0)?;
        Ok(command)
    };
    match limited() {
        Ok(command) => command.std().exec(),
        Err(error) => error,
    }
}

#[cfg(not(target_os = "linux"))]
fn become_tool(job: &std::ffi::OsStr) -> std::io::Error {
    use std::os::unix::process::CommandExt;

    match job.to_str().map(reading::from_str::<tools::Command>) {
        Some(Ok(command)) => command.std().exec(),
        _ => IoErrorKind::InvalidInput.into(),
    }
}

/// `reserved` is the size of the address space at the start.
fn serve(reserved: u64) -> std::io::Result<()> {
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    while let Some((job, body)) = read_frame::<JobHeader>(&mut socket)? {
        allow_cpu_time()?;
        let read = match &job.file {
            Some(path) => read_file(path, reserved),
            None => Ok(body),
        };
        let decoded = read.and_then(|bytes| decode(job.want, &job.claim, &bytes));
        let (header, body) = answer(decoded);
        let body: Vec<&[u8]> = body.iter().map(AsRef::as_ref).collect();
        write_frame(&mut socket, &header, &body)?;
    }
    Ok(())
}

/// A file that is on the disk because it is large: its bytes do not count against what decoding may take.
fn read_file(path: &Path, reserved: u64) -> super::Result<Bytes> {
    let read = || -> std::io::Result<Vec<u8>> {
        let size = std::fs::metadata(path)?.len();
        allow_memory(reserved.saturating_add(size))?;
        std::fs::read(path)
    };
    let bytes = read()
        .map_err(|error| ExtractError::transient(format!("the file cannot be read: {error}")))?;
    Ok(bytes.into())
}

fn answer(decoded: super::Result<Decoded>) -> (AnswerHeader, Vec<Bytes>) {
    let picture = match decoded {
        Err(error) => return (AnswerHeader::Failed(error), Vec::new()),
        Ok(Decoded::Text(file)) => return (AnswerHeader::Text(file), Vec::new()),
        Ok(Decoded::Page(page)) => return (AnswerHeader::Page(page), Vec::new()),
        Ok(Decoded::Picture(picture)) => picture,
    };
    let mut body = vec![Bytes::from(picture.pixels.rgb)];
    let mut thumbnail_bytes = 0;
    let thumbnail_type = picture.thumbnail.map(|thumbnail| {
        thumbnail_bytes = thumbnail.bytes.len();
        body.push(thumbnail.bytes);
        thumbnail.content_type
    });
    let large = picture.large.is_some();
    body.extend(picture.large);
    let header = PictureHeader {
        width: picture.width,
        height: picture.height,
        mime: picture.mime,
        small_width: picture.pixels.width,
        small_height: picture.pixels.height,
        thumbnail_type,
        thumbnail_bytes,
        large,
        dominant_color: picture.dominant_color,
        exif: picture.exif,
        further: picture.further,
    };
    (AnswerHeader::Picture(header), body)
}

/// The parent's side of [`answer`].
pub(super) fn understand(header: AnswerHeader, body: Bytes) -> super::Result<Decoded> {
    let picture = match header {
        AnswerHeader::Failed(error) => return Err(error),
        AnswerHeader::Text(file) => return Ok(Decoded::Text(file)),
        AnswerHeader::Page(page) => return Ok(Decoded::Page(page)),
        AnswerHeader::Picture(picture) => picture,
    };
    let length = picture.small_width as usize * picture.small_height as usize * 3;
    let end = length.saturating_add(picture.thumbnail_bytes);
    if body.len() < end {
        return Err(ExtractError::transient(
            "the extraction process answered with half a picture",
        ));
    }
    let rgb = body.slice(..length).to_vec();
    let thumbnail = picture.thumbnail_type.map(|content_type| Thumbnail {
        content_type,
        bytes: body.slice(length..end),
    });
    Ok(Decoded::Picture(Picture {
        width: picture.width,
        height: picture.height,
        mime: picture.mime,
        pixels: Pixels {
            width: picture.small_width,
            height: picture.small_height,
            rgb,
        },
        thumbnail,
        large: picture.large.then(|| body.slice(end..)),
        dominant_color: picture.dominant_color,
        exif: picture.exif,
        further: picture.further,
    }))
}

pub(super) fn write_frame(
    to: &mut impl Write,
    header: &impl Serialize,
    body: &[&[u8]],
) -> std::io::Result<()> {
    let header = serde_json::to_vec(header)?;
    let length: usize = body.iter().map(|piece| piece.len()).sum();
    let too_large = |_| std::io::Error::other("the frame is too large");
    let mut start = u32::try_from(header.len())
        .map_err(too_large)?
        .to_be_bytes()
        .to_vec();
    start.extend((length as u64).to_be_bytes());
    to.write_all(&start)?;
    to.write_all(&header)?;
    body.iter().try_for_each(|piece| to.write_all(piece))?;
    to.flush()
}

/// `None` when the other side closed between two frames.
pub(super) fn read_frame<T: DeserializeOwned>(
    from: &mut impl Read,
) -> std::io::Result<Option<(T, Bytes)>> {
    let mut start = [0; 12];
    match from.read_exact(&mut start[..1]) {
        Err(error) if error.kind() == IoErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    from.read_exact(&mut start[1..])?;
    let (header, body) = start.split_at(4);
    let length = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let (header, body) = (length(header), length(body));
    if header.max(body) > MAX_FRAME as u64 {
        return Err(std::io::Error::other("the frame is too large"));
    }
    let header = read_exactly(from, header)?;
    let body = read_exactly(from, body)?;
    Ok(Some((reading::from_slice(&header)?, body.into())))
}

fn read_exactly(from: &mut impl Read, length: u64) -> std::io::Result<Vec<u8>> {
    // Grows with what arrives: a length alone reserves nothing.
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(IoErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// Answers the size of the address space before the first job.
#[cfg(target_os = "linux")]
fn limit() -> std::io::Result<u64> {
    use rustix::process::{Resource, Signal, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Should the parent have died before this line, the closed socket ends the worker.
    // The allocator reserves addresses as the process starts; what matters is what the jobs add.
    let reserved = reserved_bytes()?;
    allow_memory(reserved)?;
    lower(Resource::Nofile, OPEN_FILES)?;
    lower(Resource::Core, 0)?;
    allow_cpu_time()?;
    Ok(reserved)
}

#[cfg(not(target_os = "linux"))]
fn limit() -> std::io::Result<u64> {
    Ok(0)
}

/// Lets the address space grow by what a job may take, beyond so many bytes.
#[cfg(target_os = "linux")]
fn allow_memory(bytes: u64) -> std::io::Result<()> {
    lower(
        rustix::process::Resource::As,
        bytes.saturating_add(MEMORY_BYTES),
    )
}

#[cfg(not(target_os = "linux"))]
fn allow_memory(_: u64) -> std::io::Result<()> {
    Ok(())
}

/// The size of the address space so far.
#[cfg(target_os = "linux")]
fn reserved_bytes() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kibibytes = size.and_then(|size| size.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let unread = || std::io::Error::other("the size of this process cannot be read");
    Ok(kibibytes.ok_or_else(unread)? << 10)
}

/// The soft limit to `value`, or to the hard one where that is lower.
#[cfg(target_os = "linux")]
fn lower(resource: rustix::process::Resource, value: u64) -> std::io::Result<()> {
    let mut limit = rustix::process::getrlimit(resource);
    let value = limit.maximum.map_or(value, |maximum| maximum.min(value));
    limit.current = Some(value);
    rustix::process::setrlimit(resource, limit)?;
    Ok(())
}

/// Gives the next job its processor time: the limit counts from the start of the process.
#[cfg(target_os = "linux")]
fn allow_cpu_time() -> std::io::Result<()> {
    lower(
        rustix::process::Resource::Cpu,
        used_cpu_seconds() + CPU_SECONDS,
    )
}

#[cfg(not(target_os = "linux"))]
fn allow_cpu_time() -> std::io::Result<()> {
    Ok(())
}

/// User and system time so far, rounded up. The kernel counts in hundredths here on every architecture.
#[cfg(target_os = "linux")]
fn used_cpu_seconds() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in brackets and may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    ticks.div_ceil(100)
}
