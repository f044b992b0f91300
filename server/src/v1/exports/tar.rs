//! Tar files as far as samples need them: plain files with short names, in the form of POSIX (`ustar`).

const BLOCK: usize = 512;

/// Bytes of the largest file, whose size has eleven octal digits.
pub const LARGEST: u64 = 0o777_7777_7777;

/// Letters of a name.
const NAME: usize = 100;

/// What stands before the bytes of a file. `at` is in seconds.
pub fn head(name: &str, size: u64, at: i64) -> Vec<u8> {
    let mut head = vec![0; BLOCK];
    let mut put = |from: usize, text: &[u8]| {
        head[from..from + text.len()].copy_from_slice(text);
    };
    let name = name.as_bytes();
    put(0, &name[..name.len().min(NAME)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", size.min(LARGEST)).as_bytes());
    put(136, format!("{:011o}\0", at.max(0)).as_bytes());
    // The sum is taken with blanks in its own place.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    head
}

/// What fills the last block of a file of this size.
pub fn rest(size: u64) -> Vec<u8> {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    vec![0; (BLOCK - over) % BLOCK]
}

/// What stands behind the last file.
pub fn end() -> Vec<u8> {
    vec![0; 2 * BLOCK]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_as_posix_has_it() {
        let head = head("doc_1.json", 1_000, 1_700_000_000);
        assert_eq!(head.len(), BLOCK);
        assert!(head.starts_with(b"doc_1.json\0"));
        assert_eq!(&head[124..136], b"00000001750\0");
        assert_eq!(&head[136..148], b"14524770400\0");
        assert_eq!(&head[257..265], b"ustar\x0000");
        let sum = std::str::from_utf8(&head[148..154]).unwrap();
        let sum = u32::from_str_radix(sum, 8).unwrap();
        let others = head[..148].iter().chain(&head[156..]);
        let found: u32 = others.map(|byte| u32::from(*byte)).sum();
        assert_eq!(sum, found + 8 * u32::from(b' '));
    }

    #[test]
    fn files_end_with_their_block() {
        assert_eq!(rest(0).len(), 0);
        assert_eq!(rest(1).len(), 511);
        assert_eq!(rest(512).len(), 0);
        assert_eq!(rest(LARGEST).len(), 1);
    }
}
