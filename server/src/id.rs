//! Identifiers: a prefix and random text.

use rand::Rng;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// `count` characters of base62 from the operating system's generator.
pub fn random_base62(count: usize) -> String {
    let mut random = rand::rngs::ThreadRng::default();
    (0..count)
        .map(|_| char::from(BASE62[random.random_range(0..BASE62.len())]))
        .collect()
}

/// A new id such as `bkt_0VfT…`: nine characters of time, in which ids sort, and eleven random ones (65 bits). Rows that
/// come one after the other then lie beside each other in the indexes; ids in no order touch a page of each for every row.
pub fn new(prefix: &str) -> String {
    let micros = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |time| time.as_micros() as u64);
    format!("{prefix}{}{}", base62::<9>(micros), random_base62(11))
}

/// Task ids are UUIDs of version 4.
pub fn task() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A number below 62^6 as six characters of base62.
pub(crate) fn base62_checksum(number: u32) -> String {
    base62::<6>(number.into())
}

/// The last `N` digits of a number.
fn base62<const N: usize>(mut number: u64) -> String {
    let mut text = [b'0'; N];
    for place in text.iter_mut().rev() {
        *place = BASE62[(number % 62) as usize];
        number /= 62;
    }
    text.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_their_time_and_are_never_the_same() {
        let ids: Vec<String> = (0..1000)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_micros(2));
                new("obj_")
            })
            .collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ids.iter().all(|id| id.len() == 24));
    }
}
