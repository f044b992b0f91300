//! The suite on the remote store: against a server in this process, and, when asked for, a real one:
//! `LOUPE_TEST_QDRANT=http://localhost:6334 cargo test -p loupe-engine --features test-qdrant --test store real_server`.

use std::sync::Arc;
#[cfg(feature = "test-qdrant")]
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use loupe_engine::store::{DocStore, Remote, RemoteOptions};
use tempfile::TempDir;

use crate::server::{self, State};
use crate::suite::Bed;

struct Served {
    dir: TempDir,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
    store: Remote,
}

#[async_trait]
impl Bed for Served {
    fn store(&self) -> &dyn DocStore {
        &self.store
    }

    async fn reopen(&mut self) {
        self.task.abort();
        let collections = self.state.stop();
        let (url, state, task) = server::serve(self.dir.path().to_owned()).await;
        state.start(collections);
        (self.state, self.task) = (state, task);
        self.store = Remote::connect(&RemoteOptions::new(url)).unwrap();
    }
}

async fn served() -> Served {
    let dir = tempfile::tempdir().unwrap();
    let (url, state, task) = server::serve(dir.path().to_owned()).await;
    let store = Remote::connect(&RemoteOptions::new(url)).unwrap();
    Served {
        dir,
        state,
        task,
        store,
    }
}

crate::conformance!(served());

/// Without the feature there are no such tests, rather than tests that pass without a server.
#[cfg(feature = "test-qdrant")]
mod real_server {
    use super::*;

    /// A real server keeps what it has, so every test has collections of its own.
    struct Real {
        options: RemoteOptions,
        store: Remote,
    }

    #[async_trait]
    impl Bed for Real {
        fn store(&self) -> &dyn DocStore {
            &self.store
        }

        async fn reopen(&mut self) {
            self.store = Remote::connect(&self.options).unwrap();
        }
    }

    async fn real() -> Real {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let url = std::env::var("LOUPE_TEST_QDRANT")
            .expect("LOUPE_TEST_QDRANT names the gRPC address of a Qdrant server");
        let mut options = RemoteOptions::new(url);
        options.prefix = format!(
            "loupe_test_{}_{}_",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        Real {
            store: Remote::connect(&options).unwrap(),
            options,
        }
    }

    crate::conformance!(real());
}
