//! What a person at the terminal sees of long work: a bar on stderr, or a line every tenth where it is no terminal.

use std::{
    collections::HashMap,
    io::{IsTerminal, Write},
    sync::{Arc, Mutex, PoisonError},
};

use loupe_engine::embed::OnProgress;

/// Characters of a bar.
const WIDTH: u64 = 24;

/// The progress of one piece of work.
pub struct Bar {
    label: String,
    /// The last thing shown, in tenths without a terminal and in hundredths with one.
    shown: Option<u64>,
    terminal: bool,
}

impl Bar {
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            shown: None,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Shows how far the work is, when that changes the picture.
    pub fn show(&mut self, done: u64, total: u64) {
        let percent = done
            .saturating_mul(100)
            .checked_div(total)
            .unwrap_or(0)
            .min(100);
        let step = if self.terminal { percent } else { percent / 10 };
        if self.shown == Some(step) {
            return;
        }
        self.shown = Some(step);
        let mut stderr = std::io::stderr().lock();
        // A closed stderr is no reason to stop the work.
        let _ = if self.terminal {
            write!(stderr, "\r{}", drawn(&self.label, percent))
        } else {
            writeln!(stderr, "{}: {percent} %", self.label)
        };
        let _ = stderr.flush();
    }

    /// Ends the line.
    pub fn end(self) {
        if self.terminal && self.shown.is_some() {
            eprintln!();
        }
    }
}

fn drawn(label: &str, percent: u64) -> String {
    let full = percent * WIDTH / 100;
    let bar: String = (0..WIDTH)
        .map(|place| if place < full { '█' } else { '░' })
        .collect();
    format!("{label} {bar} {percent:>3} %")
}

/// Shows the models that are fetched; nothing is shown of those that are there already.
pub fn of_models() -> OnProgress {
    let bars: Mutex<HashMap<&'static str, Bar>> = Mutex::default();
    Arc::new(move |progress| {
        let mut bars = bars.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.total > 0 && progress.done >= progress.total && progress.what == "ready" {
            if let Some(mut bar) = bars.remove(progress.model) {
                bar.show(progress.done, progress.total);
                bar.end();
            }
            return;
        }
        let label = || Bar::new(format!("Fetching the model {}, once", progress.model));
        // Checking what arrived starts a count of its own, which would throw the bar back.
        if progress.what != "checking" {
            bars.entry(progress.model)
                .or_insert_with(label)
                .show(progress.done, progress.total);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::drawn;

    #[test]
    fn a_bar_fills_with_the_work() {
        assert_eq!(drawn("x", 0), format!("x {}   0 %", "░".repeat(24)));
        assert_eq!(
            drawn("x", 50),
            format!("x {}{}  50 %", "█".repeat(12), "░".repeat(12))
        );
        assert_eq!(drawn("x", 100), format!("x {} 100 %", "█".repeat(24)));
    }
}
