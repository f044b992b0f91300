//! How long answers take: a histogram for each operation of a key and hour, with four steps to a doubling. A figure that is
//! read from it is off by an eighth at most, however many answers there were.

use std::collections::BTreeMap;

/// Steps of an octave, as a power of two.
const FINENESS: u32 = 2;
/// What is shorter or longer is told apart no further: 64 µs and 18 minutes. In between lie 96 steps.
const SHORTEST: i64 = 1 << 6;
const LONGEST: i64 = (1 << 30) - 1;

/// Answers by the step that they took, which is named by its lower bound in microseconds.
#[derive(Debug, Default)]
pub struct Histogram(BTreeMap<i64, i64>);

impl Histogram {
    /// Counts one answer.
    pub fn note(&mut self, micros: i64) {
        self.add(step(micros), 1);
    }

    /// Adds what was counted of a step before.
    pub fn add(&mut self, step: i64, answers: i64) {
        *self.0.entry(step).or_default() += answers;
    }

    /// The steps that were taken, each with its answers.
    pub fn steps(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.0.iter().map(|(step, answers)| (*step, *answers))
    }

    /// Microseconds that `hundredths` of the answers took at most; nothing when nothing was counted.
    pub fn percentile(&self, hundredths: i64) -> Option<i64> {
        let total: i64 = self.0.values().sum();
        // The first answer that so many of all do not exceed, counted from 1.
        let wanted = (total * hundredths + 99) / 100;
        let mut passed = 0;
        let found = self.steps().find(|(_, answers)| {
            passed += answers;
            passed >= wanted
        });
        found.map(|(step, _)| step + width(step) / 2)
    }
}

/// The lower bound of the step that a time lies in.
fn step(micros: i64) -> i64 {
    let micros = micros.clamp(SHORTEST, LONGEST);
    let width = width(micros);
    micros / width * width
}

/// How wide the step is that a time lies in.
fn width(micros: i64) -> i64 {
    1 << (micros.max(SHORTEST).ilog2() - FINENESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_few_and_lie_side_by_side() {
        let (mut at, mut count) = (SHORTEST, 0);
        while at < LONGEST {
            assert_eq!((step(at), step(at + width(at) - 1)), (at, at));
            at += width(at);
            count += 1;
        }
        assert_eq!(count, 96);
        assert_eq!((step(-1), step(0), step(i64::MAX)), (64, 64, step(LONGEST)));
    }

    #[test]
    fn a_percentile_is_that_of_the_answers_but_for_an_eighth() {
        assert_eq!(Histogram::default().percentile(95), None);
        let mut told = Histogram::default();
        (1..=1000).for_each(|number| told.note(number * 1000));
        for (hundredths, exact) in [(50, 500_000), (95, 950_000), (99, 990_000)] {
            let read = told.percentile(hundredths).unwrap();
            assert!((read - exact).abs() * 8 <= exact, "{hundredths}: {read}");
        }
        // Of twenty answers one may be slow without being told of.
        let mut told = Histogram::default();
        (0..19).for_each(|_| told.note(1000));
        told.note(5_000_000);
        assert!(told.percentile(95).unwrap() < 1200);
        told.note(5_000_000);
        assert!(told.percentile(95).unwrap() > 4_000_000);
    }
}
