//! Snappy, as Parquet compresses its pages where nobody chooses otherwise.

use super::{Fault, Result, broken};

fn cut() -> Fault {
    broken("a page is not what its compression says")
}

fn number(bytes: &[u8], at: &mut usize, length: usize) -> Result<usize> {
    let end = *at + length;
    let taken = bytes.get(*at..end).ok_or_else(cut)?;
    *at = end;
    let number = taken.iter().rev();
    Ok(number.fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

/// The bytes that were compressed, of which there are so many.
pub fn decompress(bytes: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut at = 0;
    let mut told = 0usize;
    for shift in (0..35).step_by(7) {
        let byte = number(bytes, &mut at, 1)?;
        told |= (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    if told != size {
        return Err(cut());
    }
    let mut out: Vec<u8> = Vec::with_capacity(size);
    while at < bytes.len() {
        let tag = number(bytes, &mut at, 1)?;
        let (length, back) = match tag & 3 {
            0 => {
                let length = match tag >> 2 {
                    short @ 0..60 => short + 1,
                    long => number(bytes, &mut at, long - 59)? + 1,
                };
                let end = at.checked_add(length).ok_or_else(cut)?;
                let literal = bytes.get(at..end).ok_or_else(cut)?;
                at = end;
                if literal.len() > size - out.len() {
                    return Err(cut());
                }
                out.extend_from_slice(literal);
                continue;
            }
            1 => {
                let low = number(bytes, &mut at, 1)?;
                ((tag >> 2 & 7) + 4, (tag >> 5) << 8 | low)
            }
            2 => ((tag >> 2) + 1, number(bytes, &mut at, 2)?),
            _ => ((tag >> 2) + 1, number(bytes, &mut at, 4)?),
        };
        if back == 0 || back > out.len() || length > size - out.len() {
            return Err(cut());
        }
        // What is copied may overlap what it makes.
        for _ in 0..length {
            out.push(out[out.len() - back]);
        }
    }
    match out.len() == size {
        true => Ok(out),
        false => Err(cut()),
    }
}
