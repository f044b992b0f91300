//! What goes on by itself: one thread flushes what was written, one builds indexes.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::super::{Result, StoreError};
use super::{EdgeOptions, Inner};

/// How long a closing store waits for an index that is being built.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Signal {
    stop: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// Waits; false when it is time to stop.
    fn wait(&self, time: Duration) -> bool {
        let mut stop = self.stop.lock();
        let until = Instant::now() + time;
        while !*stop {
            if self.changed.wait_until(&mut stop, until).timed_out() {
                return !*stop;
            }
        }
        false
    }
}

/// The two threads.
#[derive(Debug)]
pub struct Upkeep {
    signal: Arc<Signal>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Upkeep {
    pub fn start(inner: &Arc<Inner>, options: &EdgeOptions) -> io::Result<Self> {
        let signal = Arc::new(Signal::default());
        let threads = vec![
            run(
                "store-flush",
                &signal,
                inner,
                options.flush_every,
                Inner::flush,
            )?,
            run(
                "store-optimize",
                &signal,
                inner,
                options.optimize_every,
                Inner::optimize,
            )?,
        ];
        Ok(Self {
            signal,
            threads: Mutex::new(threads),
        })
    }

    /// Ends the threads after what they are doing.
    pub fn stop(&self) {
        *self.signal.stop.lock() = true;
        self.signal.changed.notify_all();
    }

    /// Stops and waits, but not for a long build: it ends with the process.
    pub fn join(&self) {
        self.stop();
        let until = Instant::now() + PATIENCE;
        for thread in self.threads.lock().drain(..) {
            while !thread.is_finished() && Instant::now() < until {
                thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() && thread.join().is_err() {
                tracing::error!("a thread of the document store panicked");
            }
        }
    }
}

fn run(
    name: &str,
    signal: &Arc<Signal>,
    inner: &Arc<Inner>,
    every: Duration,
    work: fn(&Inner) -> Result<()>,
) -> io::Result<JoinHandle<()>> {
    let (signal, inner, task) = (signal.clone(), inner.clone(), name.to_owned());
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        while signal.wait(every) {
            match work(&inner) {
                Ok(()) => {}
                Err(StoreError::DiskFull) => tracing::warn!(task, "not enough free disk space"),
                Err(error) => tracing::error!(task, %error, "upkeep of the document store failed"),
            }
        }
    })
}
