//! As much of CBOR (RFC 8949) as devices write for passkeys: whole numbers, bytes, texts and maps of them. The rest is passed
//! over, and what has no length before it is refused, as CTAP2 does.

/// How deep maps and lists may stand in one another.
const DEEPEST: usize = 8;

/// One item.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    Map(Vec<(Value<'a>, Value<'a>)>),
    Other,
}

impl<'a> Value<'a> {
    fn find(&self, is: impl Fn(&Value<'a>) -> bool) -> Option<&Value<'a>> {
        let Self::Map(all) = self else { return None };
        let found = all.iter().find(|(label, _)| is(label));
        found.map(|(_, value)| value)
    }

    fn labelled(&self, wanted: i64) -> Option<&Value<'a>> {
        self.find(|label| matches!(label, Value::Int(label) if *label == wanted))
    }

    /// The number with this label.
    pub fn int(&self, label: i64) -> Option<i64> {
        match self.labelled(label)? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The bytes with this label.
    pub fn bytes(&self, label: i64) -> Option<&'a [u8]> {
        match self.labelled(label)? {
            Value::Bytes(bytes) => Some(*bytes),
            _ => None,
        }
    }

    /// The bytes of this name.
    pub fn named(&self, wanted: &str) -> Option<&'a [u8]> {
        match self.find(|label| matches!(label, Value::Text(name) if *name == wanted))? {
            Value::Bytes(bytes) => Some(*bytes),
            _ => None,
        }
    }
}

/// Takes the first item away from the bytes; none where they begin with none.
pub(super) fn read<'a>(bytes: &mut &'a [u8]) -> Option<Value<'a>> {
    item(bytes, 0)
}

fn item<'a>(bytes: &mut &'a [u8], depth: usize) -> Option<Value<'a>> {
    let (kind, number) = head(bytes)?;
    if matches!(kind, 4 | 5) && depth >= DEEPEST {
        return None;
    }
    match kind {
        0 => Some(Value::Int(i64::try_from(number).ok()?)),
        1 => Some(Value::Int(-1 - i64::try_from(number).ok()?)),
        2 => Some(Value::Bytes(take(bytes, number)?)),
        3 => Some(Value::Text(std::str::from_utf8(take(bytes, number)?).ok()?)),
        // Each item takes a byte at least: whoever promises more than there are is found out at their end.
        4 => {
            for _ in 0..number {
                item(bytes, depth + 1)?;
            }
            Some(Value::Other)
        }
        5 => {
            let mut all = Vec::new();
            for _ in 0..number {
                let label = item(bytes, depth + 1)?;
                all.push((label, item(bytes, depth + 1)?));
            }
            Some(Value::Map(all))
        }
        7 => Some(Value::Other),
        _ => None,
    }
}

/// The kind of an item, and its number: a value or a length.
fn head(bytes: &mut &[u8]) -> Option<(u8, u64)> {
    let first = *take(bytes, 1)?.first()?;
    let number = match first & 31 {
        small @ 0..=23 => u64::from(small),
        size @ 24..=27 => {
            let written = take(bytes, 1 << (size - 24))?;
            let add = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
            written.iter().fold(0, add)
        }
        _ => return None,
    };
    Some((first >> 5, number))
}

fn take<'a>(bytes: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(count).ok()?)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_one_after_the_other() {
        // {"a": h'0102', 1: -7, -2: 300, "b": [1, true]}, and a byte more.
        let whole = b"\xa4\x61a\x42\x01\x02\x01\x26\x21\x19\x01\x2c\x61b\x82\x01\xf5\x00";
        let mut rest = &whole[..];
        let map = read(&mut rest).unwrap();
        assert_eq!(map.named("a"), Some(&[1_u8, 2][..]));
        assert_eq!((map.int(1), map.int(-2)), (Some(-7), Some(300)));
        assert_eq!(
            (map.int(3), map.bytes(1), map.named("b")),
            (None, None, None)
        );
        assert_eq!(rest, [0]);
        for end in 0..whole.len() - 1 {
            assert!(read(&mut &whole[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn what_promises_too_much_is_refused() {
        let deep = [0x81_u8; 100];
        for odd in [
            &deep[..],
            b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01",
            b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x5b\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x9f\x01\xff",
            b"\xc0\x01",
            b"\x62\xff\xff",
            b"",
        ] {
            let mut rest = odd;
            assert!(read(&mut rest).is_none(), "{odd:?}");
        }
    }
}
