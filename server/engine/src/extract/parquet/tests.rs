use loupe_wire::Value;
use serde_json::json;

use super::*;
use crate::extract::Folder;

/// Three rows of one table, written by pyarrow: with the first form of pages, and with the second.
const SNAPPY: &[u8] = include_bytes!("../../../tests/fixtures/table_snappy.parquet");
const ZSTD: &[u8] = include_bytes!("../../../tests/fixtures/table_zstd.parquet");

/// The first rows up to where they cannot be read, and why they cannot.
fn rows(file: &Data) -> (Vec<Object>, Option<ExtractError>) {
    let mut rows = Vec::new();
    let mut table = match Table::open(file) {
        Ok(table) => table,
        Err(error) => return (rows, Some(error)),
    };
    while rows.len() < 1_000 {
        match table.row() {
            Ok(Some(row)) => rows.push(row),
            Ok(None) => break,
            Err(error) => return (rows, Some(error)),
        }
    }
    (rows, None)
}

fn expected() -> Value {
    json!([
        {"title": "lion", "year": 1, "score": 0.5, "big": true, "tags": ["a", "b"], "vector": [1.0, 0.0],
            "when": "2026-01-02T03:04:05", "day": "2026-01-02", "inner": {"x": 1, "y": "z"}, "list_of": [{"k": 1}, {"k": 2}],
            "raw": "AP8=", "price": 12.34, "kv": {"a": 1}},
        {"title": null, "year": null, "score": null, "big": null, "tags": [], "vector": [0.0, 1.0], "when": null,
            "day": null, "inner": null, "list_of": null, "raw": null, "price": null, "kv": null},
        {"title": "lion", "year": 3, "score": 1.5, "big": false, "tags": null, "vector": [0.5, 0.5],
            "when": "2026-01-02T03:04:05.678901", "day": "1969-12-31", "inner": {"x": null, "y": null}, "list_of": [],
            "raw": "a", "price": -0.05, "kv": {}},
    ])
}

#[tokio::test]
async fn tables_are_read_whatever_they_hold() {
    for bytes in [SNAPPY, ZSTD] {
        let (rows, fault) = rows(&Data::from(bytes));
        assert!(fault.is_none(), "{fault:?}");
        assert_eq!(json!(rows), expected());
    }
    let folder = Folder::new().unwrap();
    std::fs::write(folder.path().join("table"), SNAPPY).unwrap();
    let on_disk = Data::on_disk(&folder, "table").await.unwrap();
    assert_eq!(json!(rows(&on_disk).0), expected());
}

#[test]
fn what_is_no_table_or_a_broken_one_is_refused() {
    let no_table = "the file cannot be read as Parquet: it does not end as such a file does";
    let cases: [(&'static [u8], &str); 4] = [
        (b"", no_table),
        (b"{\"a\": 1}\n", no_table),
        (
            b"PAR1\xff\xff\xff\x7fPAR1",
            "the description of the Parquet file is larger than",
        ),
        (
            b"PAR1\x00\x00\x00\x00PAR1",
            "the file cannot be read as Parquet: a description ends too early",
        ),
    ];
    for (bytes, reason) in cases {
        let fault = rows(&Data::from(bytes)).1.unwrap().message;
        assert!(fault.starts_with(reason), "{fault}");
    }
    // Whatever byte is another one: the table is read or refused, and that ends. One that is cut off is refused.
    for place in (0..SNAPPY.len()).step_by(7) {
        for other in [0x00, 0x7f, 0xff] {
            let mut bytes = SNAPPY.to_vec();
            bytes[place] = other;
            rows(&Data::from(bytes));
        }
        let cut = Data::from(SNAPPY[..place].to_vec());
        assert!(rows(&cut).1.is_some(), "{place} bytes");
    }
}

#[test]
fn what_is_small_in_a_file_and_large_in_memory_is_refused() {
    // Structs of one field: two bytes each, and hundreds in memory.
    let mut many = b"PAR1\x49\xfc\x80\x80\x10".to_vec();
    many.extend([0x11_u8, 0].repeat(1 << 18));
    many.push(0);
    let length = u32::try_from(many.len() - 4).unwrap();
    many.extend(length.to_le_bytes());
    many.extend(b"PAR1");
    let fault = rows(&Data::from(many)).1.unwrap().message;
    assert!(fault.starts_with("the unpacked description"), "{fault}");
    // The name of a field in a list is there in each item.
    let list = b"\x29\x3c\x48\x01r\x15\x02\x00\x35\x04\x18\x01i\x15\x02\x00\x15\x02\x25\x02\x18\x04long\x00\x00";
    let (about, _) = thrift::read(list).unwrap();
    let schema = Schema::of(&about.list(2)).unwrap();
    assert_eq!(schema.leaves[0].costs, [45, 28]);
    // Field numbers are no sums that overflow.
    assert!(thrift::read(b"\x05\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x15\x00\x00").is_ok());
}
