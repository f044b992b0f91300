//! Turns of those who write documents. A document is read, changed and written back whole, so whoever does that, replaces it or
//! removes it has its turn meanwhile: nothing that was read before another's write comes over it, and what was removed does not
//! come back. Turns are of one process; what other processes write is found in the feed and in the journal.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{Mutex as Queue, OwnedMutexGuard};

/// Queues of writers, by the ids of documents: an id is of one document in all namespaces. Those that nobody is in are forgotten.
type Queues = Mutex<HashMap<String, Weak<Queue<()>>>>;

/// Who writes which documents.
#[derive(Debug, Clone, Default)]
pub struct Writers(Arc<Queues>);

/// Documents that nobody else writes until the last clone of this is dropped.
#[derive(Debug, Clone)]
pub struct Turn {
    _held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    queues: Arc<Queues>,
    ids: Vec<String>,
    guards: Vec<OwnedMutexGuard<()>>,
}

impl Writers {
    /// Waits until nobody else writes any of these documents. Who has a turn waits for no other one, and not for who may want
    /// one: all that is written together is asked for at once.
    pub async fn turn<'i>(&self, ids: impl IntoIterator<Item = &'i String>) -> Turn {
        // In one order: of two who want the same documents one waits, never both.
        let ids: BTreeSet<&String> = ids.into_iter().collect();
        let mut held = Held {
            queues: self.0.clone(),
            ids: ids.iter().map(|id| (*id).clone()).collect(),
            guards: Vec::with_capacity(ids.len()),
        };
        for id in ids {
            held.guards.push(self.queue(id).lock_owned().await);
        }
        Turn {
            _held: Arc::new(held),
        }
    }

    fn queue(&self, id: &str) -> Arc<Queue<()>> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(id).and_then(Weak::upgrade) {
            return queue;
        }
        let queue = Arc::new(Queue::new(()));
        queues.insert(id.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.guards.clear();
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for id in &self.ids {
            if queues.get(id).is_some_and(|one| one.strong_count() == 0) {
                queues.remove(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[tokio::test]
    async fn writers_of_one_document_take_turns_and_leave_nothing_behind() {
        let writers = Writers::default();
        let first = writers.turn(&ids(&["a", "b", "b"])).await;
        let wanted = ids(&["c", "b"]);
        let given_up = tokio::time::timeout(Duration::from_millis(5), writers.turn(&wanted));
        assert!(given_up.await.is_err());
        // Who gave up holds nothing.
        drop(writers.turn(&ids(&["c"])).await);
        let clone = first.clone();
        drop(first);
        let second = writers.turn(&wanted);
        tokio::pin!(second);
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(clone);
        drop(second.await);
        assert!(writers.0.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn who_wants_the_same_documents_in_another_order_waits_not_for_ever() {
        let (writers, count) = (Writers::default(), Arc::new(Mutex::new((0, 0))));
        let all = (0..50).map(|number| {
            let (writers, count) = (writers.clone(), count.clone());
            async move {
                let mut wanted = ids(&["a", "b", "c"]);
                wanted.rotate_left(number % 3);
                let _turn = writers.turn(&wanted).await;
                let before = {
                    let mut count = count.lock().unwrap();
                    count.0 += 1;
                    count.1 = count.1.max(count.0);
                    count.0
                };
                tokio::task::yield_now().await;
                count.lock().unwrap().0 = before - 1;
            }
        });
        futures::future::join_all(all).await;
        assert_eq!(*count.lock().unwrap(), (0, 1));
    }
}
