//! What strangers send, for tests: honest inputs broken in every way, given to a small function over bytes that judges
//! what becomes of them. `LOUPE_FUZZ_SECONDS` gives each of them so long (2 where not said), `LOUPE_TEST_SEED` repeats a run.
//! The server's own tests have this file, too.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Longest input that is made.
const LONGEST: usize = 64 << 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Whether somebody asked for a longer run, and how long each function has.
pub fn seconds() -> (bool, Duration) {
    let asked = number("LOUPE_FUZZ_SECONDS");
    (asked.is_some(), Duration::from_secs(asked.unwrap_or(2)))
}

pub fn random() -> StdRng {
    let seed = number("LOUPE_TEST_SEED").unwrap_or(20_261_121);
    println!("LOUPE_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// Bytes with pieces taken out, put in and said again, and bits turned.
pub fn broken(honest: &[u8], corpus: &[&[u8]], pieces: &[&str], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = honest.to_vec();
    for _ in 0..random.random_range(1..=8) {
        let at = random.random_range(0..=bytes.len());
        let until = (at + random.random_range(0..12)).min(bytes.len());
        match random.random_range(0..8) {
            0 => drop(bytes.drain(at..until)),
            1 if !pieces.is_empty() => {
                let piece = pieces[random.random_range(0..pieces.len())];
                bytes.splice(at..at, piece.bytes());
            }
            2 => {
                let again = bytes[at..until].repeat(random.random_range(1..40));
                bytes.splice(at..at, again);
            }
            3 if at < bytes.len() => bytes[at] = random.random(),
            4 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            5 => bytes[at..until].fill([0, 0xff][random.random_range(0..2)]),
            6 => bytes.truncate(at),
            _ => {
                let other = corpus[random.random_range(0..corpus.len())];
                let from = random.random_range(0..=other.len());
                bytes.splice(at..at, other[from..].iter().copied());
            }
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Says on which input a function panicked.
struct Told<'b>(&'b [u8]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("broken by {:?}", String::from_utf8_lossy(self.0));
            println!("that is {:02x?}", self.0);
        }
    }
}

/// Least time that one input may take, where honest ones are quick.
const LEAST: Duration = Duration::from_secs(5);
/// How much longer than the slowest honest input another one may take, where those are slow.
const TIMES: u32 = 100;
/// An input is slow when it is each time: a machine that is busy with other things is so for a while.
const TRIES: usize = 3;
/// Inputs that are tried at least.
const FEWEST: u64 = 21;

/// How long the function takes for an input.
fn took(judge: &mut impl FnMut(&[u8]), bytes: &[u8]) -> Duration {
    let _told = Told(bytes);
    let started = Instant::now();
    judge(bytes);
    started.elapsed()
}

/// Gives the function the corpus as it is, then broken, until the time is over. None may take far longer than an honest one.
pub fn run(corpus: &[&[u8]], pieces: &[&str], mut judge: impl FnMut(&[u8])) {
    let mut random = random();
    let end = Instant::now() + seconds().1;
    let mut count = 0_u64;
    let honest = corpus.iter().map(|honest| took(&mut judge, honest));
    let slowest = honest.max().unwrap_or_default();
    let most = LEAST.max(slowest * TIMES);
    while count < FEWEST || Instant::now() < end {
        let honest = corpus[random.random_range(0..corpus.len())];
        let bytes = broken(honest, corpus, pieces, &mut random);
        let is_slow = (0..TRIES).all(|_| took(&mut judge, &bytes) > most);
        let _told = Told(&bytes);
        assert!(!is_slow, "longer than {most:?}, {TRIES} times");
        count += 1;
    }
    println!("{count} inputs");
}
