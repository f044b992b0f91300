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

/// A new id such as `bkt_8fK…` (20 random characters, 119 bits).
pub fn new(prefix: &str) -> String {
    format!("{prefix}{}", random_base62(20))
}

/// Task ids are UUIDs of version 4.
pub fn task() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A number below 62^6 as six characters of base62.
pub(crate) fn base62_checksum(mut number: u32) -> String {
    let mut text = [b'0'; 6];
    for place in text.iter_mut().rev() {
        *place = BASE62[(number % 62) as usize];
        number /= 62;
    }
    text.iter().map(|byte| char::from(*byte)).collect()
}
