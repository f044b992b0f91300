//! A picture that lies as the one before: turned, mirrored and moved onto it by the points that are in both (orthogonal
//! Procrustes: Schönemann 1966), in two dimensions.

/// Fewer points than this fix no picture: two of them lie as well on their places mirrored.
const LEAST: usize = 3;

/// Where a point is, and where it was.
type Pair = ([f64; 2], [f64; 2]);

/// Lays a picture so that the points that were there before come as near to their places as they can, without stretching
/// it. Whether there are enough of them to tell; where not, nothing is moved.
pub fn aligned(at: &mut [Vec<f32>], before: &[Option<&[f32]>]) -> bool {
    let pair = |(now, was): (&Vec<f32>, &Option<&[f32]>)| Some((flat(now)?, flat((*was)?)?));
    let pairs: Vec<Pair> = at.iter().zip(before).filter_map(pair).collect();
    if pairs.len() < LEAST {
        return false;
    }
    let now = middle(pairs.iter().map(|pair| pair.0));
    let was = middle(pairs.iter().map(|pair| pair.1));
    // How the directions of now go together with those of before.
    let mut both = [[0.0; 2]; 2];
    for (a, b) in &pairs {
        for (row, (x, from)) in both.iter_mut().zip(a.iter().zip(now)) {
            for (sum, (y, to)) in row.iter_mut().zip(b.iter().zip(was)) {
                *sum += (x - from) * (y - to);
            }
        }
    }
    let [[xx, xy], [yx, yy]] = both;
    let (turned, mirrored) = ((xx + yy, xy - yx), (xx - yy, xy + yx));
    let is_mirrored = mirrored.0.hypot(mirrored.1) > turned.0.hypot(turned.1);
    let (cos, sin) = if is_mirrored { mirrored } else { turned };
    let length = cos.hypot(sin);
    let (cos, sin) = match length > 0.0 {
        true => (cos / length, sin / length),
        false => (1.0, 0.0),
    };
    for point in at {
        let Some([x, y]) = flat(point) else { continue };
        let (x, mut y) = (x - now[0], y - now[1]);
        if is_mirrored {
            y = -y;
        }
        point[0] = (x * cos - y * sin + was[0]) as f32;
        point[1] = (x * sin + y * cos + was[1]) as f32;
    }
    true
}

fn flat(point: &[f32]) -> Option<[f64; 2]> {
    match point {
        [x, y] => Some([f64::from(*x), f64::from(*y)]),
        _ => None,
    }
}

fn middle(points: impl ExactSizeIterator<Item = [f64; 2]>) -> [f64; 2] {
    let count = points.len().max(1) as f64;
    let sum = points.fold([0.0; 2], |sum, point| {
        [sum[0] + point[0], sum[1] + point[1]]
    });
    sum.map(|x| x / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_that_was_turned_mirrored_and_moved_lies_as_before() {
        let was: Vec<Vec<f32>> = (0..12)
            .map(|i| vec![i as f32, (i * i % 7) as f32 * 0.5])
            .collect();
        let before: Vec<Option<&[f32]>> = was.iter().map(|point| Some(&point[..])).collect();
        for (angle, mirror) in [(0.0_f32, 1.0_f32), (2.0, 1.0), (-0.7, -1.0)] {
            let (sin, cos) = angle.sin_cos();
            let moved = |point: &Vec<f32>| {
                let (x, y) = (point[0], point[1] * mirror);
                vec![x * cos - y * sin + 40.0, x * sin + y * cos - 3.0]
            };
            let mut at: Vec<Vec<f32>> = was.iter().map(moved).collect();
            // One that is new goes along.
            at.push(moved(&vec![20.0, 20.0]));
            let mut before = before.clone();
            before.push(None);
            assert!(aligned(&mut at, &before));
            let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-3);
            for (now, was) in at.iter().zip(&was) {
                assert!(near(now, was), "{angle} {mirror}: {now:?} {was:?}");
            }
            assert!(near(&at[12], &[20.0, 20.0]), "{angle} {mirror}: {at:?}");
        }
    }

    #[test]
    fn too_few_points_move_nothing() {
        let mut at = vec![vec![1.0, 2.0], vec![3.0, 4.0], vec![5.0, 6.0, 7.0]];
        let before: [Option<&[f32]>; 3] = [Some(&[0.0, 0.0]), None, Some(&[1.0, 1.0, 1.0])];
        assert!(!aligned(&mut at, &before));
        assert_eq!(at[0], [1.0, 2.0]);
    }
}
