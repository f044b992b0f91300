//! Weights that are tried out beside those that were learned.
//!
//! How much is tried out is `e = max(exploration_floor, exploration_bonus * exploration_decay ^ acts)`: much at first, less with
//! every act. With what speaks for a list (`for`) and against it (`against`), the priors `prior_alpha` and `prior_beta` with
//! it,
//!
//! ```text
//! thompson_sampling   a draw from Beta(for / e, against / e) is the list's worth
//! epsilon_greedy      with probability min(1, e) the worths are drawn from 0 to 1, else they are the lists' means
//! ucb                 for / (for + against) + e * sqrt(2 * ln(1 + acts) / (for + against))
//! ```
//!
//! and worths are brought between the bounds as learned weights are. What is drawn depends on the question and on how much
//! was learned: the pages of an answer fit together, the same question is answered the same until somebody acts, and
//! different questions try different weights.

use loupe_wire::{LearnedFusionConfig, LearningAlgorithm, Value};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Beta, Distribution};
use sha2::{Digest, Sha256};

use super::learned::{Learned, bounded};

/// Evidence below which a draw is no longer one of a distribution.
const LEAST: f64 = 1e-3;

/// A number that stands for a question.
pub(crate) fn number_of(question: &Value) -> u64 {
    let digest = Sha256::digest(question.to_string());
    let first = digest.iter().take(8);
    first.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Where a question stands among all, in percent.
pub(crate) fn share_of(question: u64) -> f64 {
    (question % 10_000) as f64 / 100.0
}

/// The weights that a question is answered with; they add up to 1.
pub(crate) fn weights(
    algorithm: LearningAlgorithm,
    config: &LearnedFusionConfig,
    learned: &Learned,
    question: u64,
) -> Vec<f64> {
    let acts = learned.acts as f64;
    let much = (config.exploration_bonus * config.exploration_decay.powf(acts))
        .max(config.exploration_floor);
    let mut random = StdRng::seed_from_u64(question ^ (learned.acts as u64).rotate_left(40));
    let worths: Vec<f64> = match algorithm {
        LearningAlgorithm::ThompsonSampling => {
            let scale = much.max(LEAST);
            let draw = |(good, bad): &(f64, f64)| {
                let beta = Beta::new((good / scale).max(LEAST), (bad / scale).max(LEAST));
                beta.map_or(*good, |beta| beta.sample(&mut random))
            };
            learned.evidence.iter().map(draw).collect()
        }
        LearningAlgorithm::EpsilonGreedy if random.random::<f64>() < much => {
            let lists = learned.evidence.iter();
            lists.map(|_| random.random::<f64>()).collect()
        }
        LearningAlgorithm::EpsilonGreedy => return learned.weights.clone(),
        LearningAlgorithm::Ucb => {
            let worth = |(good, bad): &(f64, f64)| {
                let looks = good + bad;
                good / looks + much * (2.0 * (1.0 + acts).ln() / looks).sqrt()
            };
            learned.evidence.iter().map(worth).collect()
        }
    };
    if worths.iter().sum::<f64>() <= 0.0 {
        return learned.weights.clone();
    }
    bounded(config, &worths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(acts: usize) -> Learned {
        let acts_of = acts as f64;
        Learned {
            acts,
            weights: vec![0.1, 0.9],
            evidence: vec![(1.0, 1.0 + acts_of), (1.0 + acts_of, 1.0)],
        }
    }

    fn spread(algorithm: LearningAlgorithm, acts: usize) -> (f64, f64) {
        let config = LearnedFusionConfig::default();
        let of = |question| weights(algorithm, &config, &learned(acts), question)[1];
        let drawn: Vec<f64> = (0..2_000).map(|n| of(number_of(&n.into()))).collect();
        let mean = drawn.iter().sum::<f64>() / 2_000.0;
        let spread = drawn.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 2_000.0;
        (mean, spread.sqrt())
    }

    #[test]
    fn much_is_tried_out_at_first_and_less_with_every_act() {
        for algorithm in [
            LearningAlgorithm::ThompsonSampling,
            LearningAlgorithm::EpsilonGreedy,
        ] {
            let (early, late) = (spread(algorithm, 5), spread(algorithm, 400));
            assert!(early.1 > 1.5 * late.1, "{algorithm:?}: {early:?} {late:?}");
            assert!(late.0 > 0.8, "{algorithm:?}: {late:?}");
        }
        // An upper bound is no draw, and comes down to the means.
        let (early, late) = (
            spread(LearningAlgorithm::Ucb, 5),
            spread(LearningAlgorithm::Ucb, 400),
        );
        assert!(
            early.1 < 1e-9 && late.1 < 1e-9 && early.0 < late.0,
            "{early:?} {late:?}"
        );
    }

    #[test]
    fn the_same_question_is_answered_the_same_until_somebody_acts() {
        let config = LearnedFusionConfig::default();
        let of = |acts, question| {
            weights(
                LearningAlgorithm::ThompsonSampling,
                &config,
                &learned(acts),
                question,
            )
        };
        assert_eq!(of(5, 7), of(5, 7));
        assert_ne!(of(5, 7), of(5, 8));
        assert_ne!(of(5, 7), of(6, 7));
        assert!((of(5, 7).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let below = (0..10_000_u64)
            .filter(|n| share_of(number_of(&(*n).into())) < 25.0)
            .count();
        assert!((2_300..2_700).contains(&below), "{below}");
    }
}
