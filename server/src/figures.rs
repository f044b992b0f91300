//! Figures of many numbers.

/// Numbers in their order.
#[derive(Debug, Clone, Default)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    pub fn new(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        Self(numbers)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest number that such a share of all does not exceed (nearest rank); 0 of none.
    pub fn percentile(&self, share: f64) -> f64 {
        // A share such as 0.07 is a little more than it is written as.
        let place = (share * self.0.len() as f64 - 1e-9).ceil() as usize;
        self.0.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }

    /// 0 of none.
    pub fn mean(&self) -> f64 {
        ratio(self.0.iter().sum(), self.0.len() as f64)
    }
}

/// One by the other; 0 by nothing.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// A number of things.
pub fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Sorted;

    #[test]
    fn percentiles_are_numbers_that_are_there() {
        let hundred = Sorted::new((1..=100).rev().map(f64::from).collect());
        let shares = [0.0, 0.01, 0.5, 0.95, 0.99, 1.0];
        assert_eq!(
            shares.map(|share| hundred.percentile(share)),
            [1.0, 1.0, 50.0, 95.0, 99.0, 100.0]
        );
        assert_eq!((hundred.mean(), hundred.max()), (50.5, 100.0));
        let none = Sorted::default();
        assert_eq!(
            (none.percentile(0.5), none.mean(), none.max()),
            (0.0, 0.0, 0.0)
        );
    }
}
