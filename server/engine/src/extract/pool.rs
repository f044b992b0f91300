//! The worker processes, seen from their parent.

use std::ffi::OsString;
use std::io::ErrorKind as IoErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::media::disk;
use super::tools::{Limits, Runner, Tool, Tools};
use super::worker::{
    self, AnswerHeader, JobHeader, MAX_FRAME, read_frame, understand, write_frame,
};
use super::{Claim, Data, Decoded, ExtractError, Place, Result, Want, decode};

/// Larger files are refused before a worker sees them, unless another limit is set.
const MOST_BYTES: usize = 500 << 20;
/// From the first byte sent to the last byte answered.
const WALL_TIME: Duration = Duration::from_secs(60);
/// A worker is replaced after this many jobs, so that what its libraries leak ends with it.
const JOBS_OF_A_WORKER: usize = 1_000;

/// Decodes files in processes of their own. Cheap to clone; the processes end with the last clone.
#[derive(Debug, Clone)]
pub struct Extraction {
    place: Where,
    runner: Runner,
    /// Programs that may run at once.
    turns: Arc<Semaphore>,
    /// Of a file that is decoded.
    most_bytes: usize,
}

#[derive(Debug, Clone)]
enum Where {
    Pool(mpsc::Sender<Job>),
    InProcess,
}

#[derive(Debug)]
struct Job {
    header: JobHeader,
    bytes: Data,
    answer: oneshot::Sender<Result<Decoded>>,
}

impl Extraction {
    /// Runs `worker_exe extract-worker`, at most `concurrency` at once, each started when first needed.
    pub fn new(worker_exe: PathBuf, concurrency: usize) -> Self {
        Self::with_arguments(worker_exe, vec!["extract-worker".into()], concurrency)
    }

    /// As [`Extraction::new`], with other arguments for the executable.
    pub fn with_arguments(
        worker_exe: PathBuf,
        arguments: Vec<OsString>,
        concurrency: usize,
    ) -> Self {
        let concurrency = concurrency.max(1);
        let (sender, receiver) = mpsc::channel(concurrency * 2);
        let receiver = Arc::new(Mutex::new(receiver));
        for number in 0..concurrency {
            let (receiver, exe, arguments) =
                (Arc::clone(&receiver), worker_exe.clone(), arguments.clone());
            // A thread for each worker, not the runtime's pool: the kernel ends a worker with the thread that
            // started it.
            let started = std::thread::Builder::new()
                .name(format!("extract-{number}"))
                .spawn(move || run(&receiver, &mut Worker::new(exe, arguments)));
            if let Err(error) = started {
                tracing::error!(%error, "a thread for extraction cannot be started");
            }
        }
        Self {
            place: Where::Pool(sender),
            runner: Runner {
                tools: Tools::none(),
                through: Some((worker_exe, arguments)),
            },
            turns: Arc::new(Semaphore::new(concurrency)),
            most_bytes: MOST_BYTES,
        }
    }

    /// With the programs that were found on this machine.
    #[must_use]
    pub fn with_tools(mut self, tools: Tools) -> Self {
        self.runner.tools = tools;
        self
    }

    /// With the size of the largest file that is decoded: what may be sent is read.
    #[must_use]
    pub fn with_largest(mut self, bytes: u64) -> Self {
        self.most_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self
    }

    pub fn tools(&self) -> &Tools {
        &self.runner.tools
    }

    /// Runs a program of the machine in `folder`, under limits. `what` says for people what it does.
    pub(super) async fn run(
        &self,
        tool: Tool,
        arguments: Vec<String>,
        folder: &Path,
        limits: Limits,
        what: &str,
    ) -> Result<()> {
        // Never closed.
        let _turn = self.turns.acquire().await;
        self.runner.run(tool, arguments, folder, limits, what).await
    }

    /// Decodes in this process, where a hostile file can end everything: for tests.
    pub fn in_process() -> Self {
        Self {
            place: Where::InProcess,
            runner: Runner {
                tools: Tools::none(),
                through: None,
            },
            turns: Arc::new(Semaphore::new(1)),
            most_bytes: MOST_BYTES,
        }
    }

    /// Decodes one file. One on the disk is read by the process that decodes it alone.
    pub async fn decode(
        &self,
        want: Want,
        claim: Claim,
        bytes: impl Into<Data>,
    ) -> Result<Decoded> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Err(ExtractError::permanent("the file is empty"));
        }
        let (most, file) = match bytes.place() {
            // What travels through the socket fits into a frame.
            Place::Memory(_) => (self.most_bytes.min(MAX_FRAME), None),
            Place::Disk(path) => (self.most_bytes, Some(path.to_owned())),
        };
        if bytes.len() > most {
            return Err(ExtractError::resource(format!(
                "the file has {} MiB; at most {} MiB are read",
                bytes.len() >> 20,
                most >> 20
            )));
        }
        let gone = || ExtractError::transient("extraction was stopped");
        match &self.place {
            Where::InProcess => {
                let decoding = move || decode::decode(want, &claim, &bytes.whole().map_err(disk)?);
                tokio::task::spawn_blocking(decoding)
                    .await
                    .map_err(|_| gone())?
            }
            Where::Pool(sender) => {
                let (answer, answered) = oneshot::channel();
                let job = Job {
                    header: JobHeader { want, claim, file },
                    bytes,
                    answer,
                };
                sender.send(job).await.map_err(|_| gone())?;
                answered.await.map_err(|_| gone())?
            }
        }
    }
}

fn run(receiver: &Mutex<mpsc::Receiver<Job>>, worker: &mut Worker) {
    loop {
        // One thread waits inside the lock, the others for the lock: each job wakes one.
        let Some(job) = receiver.lock().blocking_recv() else {
            return;
        };
        if job.answer.is_closed() {
            continue;
        }
        let result = worker.decode(&job);
        // Whoever asked may have gone in the meantime.
        let _ = job.answer.send(result);
    }
}

struct Worker {
    exe: PathBuf,
    arguments: Vec<OsString>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    socket: UnixStream,
    jobs: usize,
}

/// Why a job got no answer.
enum Failure {
    /// The process was gone before it had the job.
    NotSent,
    TimedOut,
    Died(Option<ExitStatus>),
}

impl Worker {
    fn new(exe: PathBuf, arguments: Vec<OsString>) -> Self {
        Self {
            exe,
            arguments,
            running: None,
        }
    }

    fn decode(&mut self, job: &Job) -> Result<Decoded> {
        let mut failure = self.attempt(job);
        if matches!(failure, Ok(Err(Failure::NotSent))) {
            // It died between two jobs, which is not this file's fault.
            failure = self.attempt(job);
        }
        let status = match failure {
            Err(error) => {
                return Err(ExtractError::transient(format!(
                    "the extraction process cannot be started: {error}"
                )));
            }
            Ok(Ok((header, body))) => return understand(header, body),
            Ok(Err(Failure::TimedOut)) => {
                return Err(ExtractError::resource(format!(
                    "reading the file took longer than {} seconds, which is the limit",
                    WALL_TIME.as_secs()
                )));
            }
            Ok(Err(Failure::NotSent)) => None,
            Ok(Err(Failure::Died(status))) => status,
        };
        Err(reason(status))
    }

    fn attempt(
        &mut self,
        job: &Job,
    ) -> std::io::Result<std::result::Result<(AnswerHeader, Bytes), Failure>> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => Running::start(&self.exe, &self.arguments)?,
        };
        let result = running.ask(job);
        // What a large file took is given back with the process.
        let lasts = running.jobs < JOBS_OF_A_WORKER && job.header.file.is_none();
        match &result {
            Ok(_) if lasts => self.running = Some(running),
            // Dropped: ended and collected.
            Ok(_) | Err(Failure::NotSent | Failure::TimedOut) => {}
            Err(Failure::Died(_)) => return Ok(Err(Failure::Died(running.end()))),
        }
        Ok(result)
    }
}

impl Running {
    fn start(exe: &PathBuf, arguments: &[OsString]) -> std::io::Result<Self> {
        let (socket, other) = UnixStream::pair()?;
        let child = Command::new(exe)
            .args(arguments)
            // Nothing that a decoder could leak: no keys, no addresses.
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(other)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            child,
            socket,
            jobs: 0,
        })
    }

    fn ask(&mut self, job: &Job) -> std::result::Result<(AnswerHeader, Bytes), Failure> {
        let deadline = Instant::now() + WALL_TIME;
        let timeout = Some(WALL_TIME);
        self.jobs += 1;
        self.socket
            .set_write_timeout(timeout)
            .map_err(|_| Failure::NotSent)?;
        let body: &[u8] = match job.bytes.place() {
            Place::Memory(bytes) => bytes,
            Place::Disk(_) => &[],
        };
        write_frame(&mut self.socket, &job.header, &[body]).map_err(|error| {
            match error.kind() {
                IoErrorKind::WouldBlock | IoErrorKind::TimedOut => Failure::TimedOut,
                _ => Failure::NotSent,
            }
        })?;
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        self.socket
            .set_read_timeout(Some(left))
            .map_err(|_| Failure::NotSent)?;
        match read_frame(&mut self.socket) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(Failure::Died(None)),
            Err(error)
                if matches!(
                    error.kind(),
                    IoErrorKind::WouldBlock | IoErrorKind::TimedOut
                ) =>
            {
                Err(Failure::TimedOut)
            }
            Err(_) => Err(Failure::Died(None)),
        }
    }

    /// The status of a worker that closed its socket; one that does not end within a moment is killed.
    fn end(&mut self) -> Option<ExitStatus> {
        for _ in 0..100 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;

/// Words for the death of a worker.
fn reason(status: Option<ExitStatus>) -> ExtractError {
    match status.and_then(|status| status.signal()) {
        Some(SIGXCPU) => ExtractError::resource(format!(
            "reading the file took more than {} seconds of processor time, which is the limit",
            worker::CPU_SECONDS
        )),
        // Nobody in the worker sends this: the machine ran out of memory or an operator stepped in.
        Some(SIGKILL) => ExtractError::transient("the extraction process was killed from outside"),
        Some(_) => ExtractError::permanent(format!(
            "the file is broken or made to do harm: its decoder crashed or needed more than {} MiB of memory",
            worker::MEMORY_BYTES >> 20
        )),
        None => ExtractError::transient("the extraction process ended without an answer"),
    }
}
