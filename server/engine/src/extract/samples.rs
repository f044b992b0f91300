//! Small files made by hand, honest and hostile.

mod packed;

use std::io::Cursor;

pub use packed::{docx, email, epub, pptx, xlsx, zip};

use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};

/// A PDF with one page for each text, in one standard font.
pub fn pdf(pages: &[&str]) -> Vec<u8> {
    let contents: Vec<Vec<u8>> = pages
        .iter()
        .map(|text| format!("BT /F1 24 Tf 72 700 Td ({text}) Tj ET").into_bytes())
        .collect();
    assemble(&contents, 1)
}

/// A PDF of one megabyte whose only page is that megabyte of blanks, `times` in a row.
pub fn pdf_bomb(times: usize) -> Vec<u8> {
    assemble(&[vec![b' '; 1 << 20]], times)
}

/// A PDF with one page for each content, which the page shows `times` in a row.
fn assemble(contents: &[Vec<u8>], times: usize) -> Vec<u8> {
    let kids: Vec<String> = (0..contents.len())
        .map(|page| format!("{} 0 R", 5 + page * 2))
        .collect();
    let mut objects: Vec<Vec<u8>> = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!(
            "<< /Type /Pages /Count {} /Kids [{}] >>",
            contents.len(),
            kids.join(" ")
        )
        .into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_vec(),
        b"<< /Title (The Two Pages) >>".to_vec(),
    ];
    for (page, content) in contents.iter().enumerate() {
        let place = format!("{} 0 R ", 6 + page * 2).repeat(times);
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> \
                 /Contents [{place}] >>"
            )
            .into_bytes(),
        );
        let mut stream = format!("<< /Length {} >>\nstream\n", content.len()).into_bytes();
        stream.extend(content);
        stream.extend(b"\nendstream");
        objects.push(stream);
    }
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        file.extend(format!("{} 0 obj\n", index + 1).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let start = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for offset in offsets {
        file.extend(format!("{offset:010} 00000 n \n").bytes());
    }
    file.extend(
        format!(
            "trailer\n<< /Size {} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n",
            objects.len() + 1
        )
        .bytes(),
    );
    file
}

pub fn png(width: u32, height: u32) -> Vec<u8> {
    let mut picture = RgbImage::from_pixel(width, height, Rgb([200, 30, 40]));
    for x in 0..width / 4 {
        picture.put_pixel(x, 0, Rgb([0, 0, 250]));
    }
    encode(DynamicImage::ImageRgb8(picture), ImageFormat::Png)
}

/// A TIFF of so many pages, as scanners and faxes write them.
pub fn tiff(pages: usize) -> Vec<u8> {
    use tiff::encoder::{TiffEncoder, colortype::Gray8};

    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut bytes).expect("memory takes everything");
    for page in 0..pages {
        let shade = vec![u8::try_from(page).expect("few"); 64];
        encoder
            .write_image::<Gray8>(8, 8, &shade)
            .expect("memory takes everything");
    }
    bytes.into_inner()
}

/// A GIF of so many frames.
pub fn gif(frames: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut bytes);
    for frame in 0..frames {
        let shade = u8::try_from(frame).expect("few");
        let picture = RgbaImage::from_pixel(8, 8, Rgba([shade, shade, shade, 255]));
        encoder
            .encode_frame(image::Frame::new(picture))
            .expect("memory takes everything");
    }
    drop(encoder);
    bytes
}

/// An icon with a PNG in it that is not transparent.
pub fn icon(width: u8, height: u8) -> Vec<u8> {
    let png = png(width.into(), height.into());
    let mut file = b"\0\0\x01\0\x01\0".to_vec();
    file.extend([width, height, 0, 0, 1, 0, 24, 0]);
    file.extend(u32::try_from(png.len()).expect("small").to_le_bytes());
    file.extend(22_u32.to_le_bytes());
    file.extend(png);
    file
}

pub fn transparent_png() -> Vec<u8> {
    encode(
        DynamicImage::ImageRgba8(RgbaImage::from_pixel(8, 8, Rgba([0, 255, 0, 0]))),
        ImageFormat::Png,
    )
}

fn encode(picture: DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, format)
        .expect("memory takes everything");
    bytes.into_inner()
}

/// A HEIC of 64 x 32 pixels that asks to be turned by a quarter, and says in its EXIF so, too, and who took it. Upright it is red
/// above and blue below.
pub fn turned_heic() -> Vec<u8> {
    hex::decode(TURNED_HEIC).expect("hexadecimal")
}

const TURNED_HEIC: &str = "\
    0000001c6674797068656963000000006d696631686569636d696166000001c86d657461000000000000002168646c72000000000000000070696374\
    0000000000000000000000000000000034696c6f63000000004440000200010000000001ec00010000000000000072000200000000025e0001000000\
    000000003e0000003869696e6600000000000200000015696e66650200000000010000687663310000000015696e6665020000010002000045786966\
    000000000e7069746d0000000000010000010769707270000000e66970636f00000076687663430103700000009000000000001ef000fcfdf8f80000\
    0f03600001001840010c01ffff03700000030090000003000003001eba0240610001002a42010103700000030090000003000003001ea020810596ea\
    e4a6b9b8086830200000030320000003002162000100064401c173c08900000013636f6c726e636c780001000d000680000000146973706500000000\
    000000400000004000000028636c6170000000400000000100000020000000010000000000000002ffffffe000000002000000107069786900000000\
    030808080000000969726f74030000001969706d6100000000000000010001068102030584860000001a69726566000000000000000e636473630002\
    00010001000000b86d6461740000006e2801af04f87164d3b7ff8177fffff6518ecbfba216f7c83f891b52ff7570bfffd3532f692ae591bd3f0f355f\
    e6807a8207d8fc05049e228c82f9f4d3b38de0fb76ca03cd40944ded6c82e863190edcdfdb6e623af5018012001de173540cf83a827fa151fc95753e\
    3710f452e578000000064578696600004d4d002a000000080002011200030000000100060000013b00020000000d0000002600000000416461204c6f\
    76656c6163650000";

/// A JPEG of 40 x 20 pixels that asks to be turned by a quarter and says who took it, and where.
pub fn jpeg_with_exif() -> Vec<u8> {
    let picture = RgbImage::from_pixel(40, 20, Rgb([20, 120, 220]));
    let plain = encode(DynamicImage::ImageRgb8(picture), ImageFormat::Jpeg);
    let artist = b"Ada Lovelace\0";
    let mut tiff = b"II*\0\x08\0\0\0".to_vec();
    // Three entries, then the offset of the next directory, then the values that do not fit.
    let after = 8 + 2 + 3 * 12 + 4;
    tiff.extend(3_u16.to_le_bytes());
    entry(&mut tiff, 0x0112, 3, 1, 6);
    entry(
        &mut tiff,
        0x013b,
        2,
        u32::try_from(artist.len()).expect("small"),
        after,
    );
    entry(&mut tiff, 0x8825, 4, 1, after + 14);
    tiff.extend(0_u32.to_le_bytes());
    tiff.extend(artist);
    tiff.push(0);
    let values = after + 14 + 2 + 4 * 12 + 4;
    tiff.extend(4_u16.to_le_bytes());
    entry(&mut tiff, 1, 2, 2, u32::from(b'S'));
    entry(&mut tiff, 2, 5, 3, values);
    entry(&mut tiff, 3, 2, 2, u32::from(b'E'));
    entry(&mut tiff, 4, 5, 3, values + 24);
    tiff.extend(0_u32.to_le_bytes());
    for number in [33_u32, 1, 30, 1, 0, 1, 151, 1, 15, 1, 0, 1] {
        tiff.extend(number.to_le_bytes());
    }
    let mut segment = b"Exif\0\0".to_vec();
    segment.extend(tiff);
    let length = u16::try_from(segment.len() + 2).expect("small");
    let mut file = plain[..2].to_vec();
    file.extend([0xff, 0xe1]);
    file.extend(length.to_be_bytes());
    file.extend(segment);
    file.extend(&plain[2..]);
    file
}

fn entry(tiff: &mut Vec<u8>, tag: u16, kind: u16, count: u32, value: u32) {
    tiff.extend(tag.to_le_bytes());
    tiff.extend(kind.to_le_bytes());
    tiff.extend(count.to_le_bytes());
    tiff.extend(value.to_le_bytes());
}

/// A PNG whose header claims the sides given; the pixels are those of a small picture.
pub fn png_claiming(width: u32, height: u32) -> Vec<u8> {
    let mut file = png(4, 4);
    file[16..20].copy_from_slice(&width.to_be_bytes());
    file[20..24].copy_from_slice(&height.to_be_bytes());
    let crc = crc32(&file[12..29]);
    file[29..33].copy_from_slice(&crc.to_be_bytes());
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    })
}
