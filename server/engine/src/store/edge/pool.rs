//! Blocking calls off the async runtime: at most so many at once, none waited for longer than the deadline.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::super::{Result, StoreError};

/// A bounded share of the runtime's blocking threads.
#[derive(Debug)]
pub struct Pool {
    permits: Arc<Semaphore>,
    deadline: Duration,
}

impl Pool {
    pub fn new(size: usize, deadline: Duration) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(size.max(1))),
            deadline,
        }
    }

    /// Runs a job. One that outlives its deadline goes on and keeps its place, so that slow calls cannot pile up.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = timeout(self.deadline, self.permits.clone().acquire_owned())
            .await
            .map_err(|_| StoreError::Unavailable("too many calls are waiting".to_owned()))?
            .map_err(|_| StoreError::Unavailable("it is closed".to_owned()))?;
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            job()
        });
        match timeout(self.deadline, task).await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => Err(StoreError::Internal(format!("a call ended early: {error}"))),
            Err(_) => Err(StoreError::Unavailable("a call took too long".to_owned())),
        }
    }
}
