//! The engine's log, looked at before the engine opens a shard.
//!
//! The engine reads its log up to the first record whose checksum does not hold and numbers what is written next from there.
//! What its segments hold has numbers, too, and nothing goes over a higher one: behind a log that lost what was flushed, every
//! change would be acknowledged and ignored. Such a log is set aside, and an empty one takes its place that numbers on behind
//! all that is stored. What came after the last flush is in the server's journal, or is done again.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use loupe_wire::{Value, reading};

const LOG: &str = "wal";
const SEGMENTS: &str = "segments";
const SEGMENT_STATE: &str = "segment.json";

/// What a file of the log begins with, before the seed of its checksums.
const MAGIC: &[u8] = b"wal\0";
/// Bytes of that, and of a record's length.
const HEADER: u64 = 8;
const CHECKSUM: u64 = 4;

/// Numbers left out behind what is stored: a flush that was cut off may have stored more than it says.
const GAP: u64 = 1 << 20;

/// Sets a log aside that would number what is written below what is stored.
pub fn check(shard: &Path) -> io::Result<()> {
    let wal = shard.join(LOG);
    let log = Log::read(&wal)?;
    let stored = stored(&shard.join(SEGMENTS))?;
    let file = log.damaged.as_ref().unwrap_or(&wal).display();
    if !log.opens || stored.is_some_and(|stored| log.next <= stored) {
        let aside = replace(&wal, stored.max(log.next.checked_sub(1)))?;
        tracing::error!(
            %file,
            aside = %aside.display(),
            "a log of the document store is damaged and set aside; what came after the last flush is applied again"
        );
    } else if log.damaged.is_some() {
        tracing::warn!(
            %file,
            "the end of a log of the document store is torn; what came after the last flush is applied again"
        );
    }
    Ok(())
}

/// What the engine will make of a log.
#[derive(Debug)]
struct Log {
    /// The number of the next record.
    next: u64,
    /// The first file that something is wrong with.
    damaged: Option<PathBuf>,
    /// Whether the engine opens it.
    opens: bool,
}

impl Log {
    fn read(wal: &Path) -> io::Result<Self> {
        let mut log = Self {
            next: 0,
            damaged: None,
            opens: true,
        };
        let mut closed = files(wal, "closed-")?;
        closed.sort_unstable();
        log.next = closed.first().map_or(0, |(start, _)| *start);
        for (start, file) in closed {
            // The engine wants them without holes.
            log.opens &= start == log.next;
            log.next = log.next.max(start);
            log.take(file)?;
        }
        let mut open = files(wal, "open-")?;
        open.sort_unstable();
        for (_, file) in open {
            log.take(file)?;
        }
        Ok(log)
    }

    fn take(&mut self, file: PathBuf) -> io::Result<()> {
        let records = records(&file)?;
        self.opens &= records.is_some();
        let (count, torn) = records.unwrap_or((0, true));
        self.next += count;
        if torn {
            self.damaged.get_or_insert(file);
        }
        Ok(())
    }
}

/// Files with this name and a number.
fn files(folder: &Path, name: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let file = entry.file_name();
        let number = file.to_str().and_then(|file| file.strip_prefix(name));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.push((number, entry.path()));
        }
    }
    Ok(found)
}

/// How many whole records a file holds, and whether something that is none comes behind them. None where the file itself
/// cannot be read as one of a log.
fn records(path: &Path) -> io::Result<Option<(u64, bool)>> {
    let file = File::open(path)?;
    // The engine looks at no more than that.
    let capacity = file.metadata()?.len() & !7;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut header = [0; HEADER as usize];
    if capacity < HEADER {
        return Ok(None);
    }
    file.read_exact(&mut header)?;
    let (magic, seed) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Ok(None);
    }
    let mut checksum = u32::from_le_bytes(seed.try_into().map_err(io::Error::other)?);
    let (mut count, mut offset, mut record) = (0, HEADER, Vec::new());
    while offset + HEADER + CHECKSUM < capacity {
        let mut header = [0; HEADER as usize];
        file.read_exact(&mut header)?;
        let length = u64::from_le_bytes(header);
        let torn = length != 0;
        let rest = length.checked_add(4_u64.wrapping_sub(length) & 7);
        let rest = rest.filter(|rest| *rest <= capacity - offset - HEADER - CHECKSUM);
        let Some(rest) = rest else {
            return Ok(Some((count, torn)));
        };
        record.clear();
        record.extend(header);
        file.by_ref().take(rest).read_to_end(&mut record)?;
        let mut said = [0; CHECKSUM as usize];
        file.read_exact(&mut said)?;
        // Each goes on from the one before, so what an older record left behind is none.
        let found = crc32c::crc32c_append(!checksum.reverse_bits(), &record);
        if found != u32::from_le_bytes(said) {
            return Ok(Some((count, torn)));
        }
        checksum = found;
        count += 1;
        offset += HEADER + rest + CHECKSUM;
    }
    Ok(Some((count, false)))
}

/// The highest number that the segments say they hold. What is wrong with them is the engine's to say.
fn stored(segments: &Path) -> io::Result<Option<u64>> {
    let mut stored = None;
    let entries = match fs::read_dir(segments) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(stored),
        entries => entries?,
    };
    for entry in entries {
        let Ok(state) = fs::read(entry?.path().join(SEGMENT_STATE)) else {
            continue;
        };
        let state: Value = reading::from_slice(&state).unwrap_or_default();
        stored = stored.max(state["version"].as_u64());
    }
    Ok(stored)
}

/// Sets the log aside and begins one whose numbers come after this one; answers where the old one is.
fn replace(wal: &Path, after: Option<u64>) -> io::Result<PathBuf> {
    let mut number = 1;
    let mut aside = wal.with_file_name(format!("{LOG}-damaged-{number}"));
    while aside.exists() {
        number += 1;
        aside.set_file_name(format!("{LOG}-damaged-{number}"));
    }
    if wal.exists() {
        fs::rename(wal, &aside)?;
    }
    // An empty file of records that are gone is how the engine itself keeps a log's numbers.
    let next = after.map_or(0, |after| after.saturating_add(GAP));
    let fresh = wal.with_extension("new");
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    fs::create_dir(&fresh)?;
    let mut file = File::create(fresh.join(format!("closed-{next}")))?;
    file.write_all(MAGIC)?;
    file.write_all(&[0; 4])?;
    file.sync_all()?;
    File::open(&fresh)?.sync_all()?;
    fs::rename(&fresh, wal)?;
    wal.parent()
        .map_or(Ok(()), |shard| File::open(shard)?.sync_all())?;
    Ok(aside)
}
