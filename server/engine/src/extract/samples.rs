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
