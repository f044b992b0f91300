//! A picture of a few shapes and lines of text, drawn in memory.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont as _, point};

/// Red, green, blue.
pub type Rgb = [u8; 3];

static REGULAR: LazyLock<FontRef<'static>> =
    LazyLock::new(|| font(include_bytes!("../../fonts/inter-regular.otf")));
static STRONG: LazyLock<FontRef<'static>> =
    LazyLock::new(|| font(include_bytes!("../../fonts/inter-semibold.otf")));

fn font(bytes: &'static [u8]) -> FontRef<'static> {
    FontRef::try_from_slice(bytes).expect("the fonts are part of the program")
}

/// How a line of text looks.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub is_strong: bool,
    /// Pixels of the em.
    pub size: f32,
    pub color: Rgb,
}

impl Style {
    fn font(&self) -> &'static FontRef<'static> {
        if self.is_strong { &STRONG } else { &REGULAR }
    }

    /// The library's scale is the height of a line, not the em.
    fn scale(&self) -> PxScale {
        let font = self.font();
        let em = font.units_per_em().unwrap_or(1000.0);
        PxScale::from(self.size * font.height_unscaled() / em)
    }

    /// Large letters stand closer together.
    fn tracking(&self) -> f32 {
        if self.is_strong && self.size > 40.0 {
            self.size * -0.02
        } else {
            0.0
        }
    }

    fn advance(&self, letter: char) -> f32 {
        let font = self.font().as_scaled(self.scale());
        font.h_advance(font.glyph_id(letter)) + self.tracking()
    }

    /// Pixels of a line.
    pub fn width(&self, text: &str) -> f32 {
        text.chars().map(|letter| self.advance(letter)).sum()
    }

    /// The text in at most so many lines, each no wider than this. What has no room is cut off with an ellipsis.
    pub fn wrap(&self, text: &str, width: f32, most: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut line = String::new();
        for word in text.split_whitespace() {
            let longer = match line.is_empty() {
                true => word.to_owned(),
                false => format!("{line} {word}"),
            };
            if line.is_empty() || self.width(&longer) <= width {
                line = longer;
            } else {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            }
        }
        lines.push(line);
        let is_cut = lines.len() > most;
        lines.truncate(most);
        let last = lines.len().saturating_sub(1);
        for (number, line) in lines.iter_mut().enumerate() {
            let is_cut = is_cut && number == last;
            if is_cut || self.width(line) > width {
                *line = self.cut(line, width);
            }
        }
        lines
    }

    fn cut(&self, line: &str, width: f32) -> String {
        let mut line = line.to_owned();
        while !line.is_empty() && self.width(&line) + self.advance('…') > width {
            line.pop();
        }
        format!("{}…", line.trim_end_matches([' ', ',', '.']))
    }
}

/// Letters of a text that are looked at: no picture has room for more.
const LONGEST: usize = 300;

/// The text without signs that the font lacks; none where letters are among them.
pub fn writable(text: &str) -> Option<String> {
    let text: String = text.chars().take(LONGEST).collect();
    let is_there = |letter: &char| letter.is_whitespace() || REGULAR.glyph_id(*letter).0 != 0;
    if text
        .chars()
        .any(|one| one.is_alphanumeric() && !is_there(&one))
    {
        return None;
    }
    let kept: String = text.chars().filter(is_there).collect();
    Some(kept).filter(|kept| !kept.trim().is_empty())
}

/// Left, top, width and height.
#[derive(Debug, Clone, Copy)]
pub struct Area(pub f32, pub f32, pub f32, pub f32);

impl Area {
    /// How far a place is outside of the area with round corners, negative within.
    fn distance(&self, radius: f32, x: f32, y: f32) -> f32 {
        let Self(left, top, width, height) = *self;
        let across = (x - left - width / 2.0).abs() - width / 2.0 + radius;
        let down = (y - top - height / 2.0).abs() - height / 2.0 + radius;
        across.max(0.0).hypot(down.max(0.0)) + across.max(down).min(0.0) - radius
    }
}

pub struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Canvas {
    pub fn new(width: u32, height: u32, ground: Rgb) -> Self {
        let pixels = ground.repeat(width as usize * height as usize);
        Self {
            width,
            height,
            pixels,
        }
    }

    fn blend(&mut self, x: i32, y: i32, color: Rgb, share: f32) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
            return;
        };
        if x >= self.width || y >= self.height {
            return;
        }
        let at = (y as usize * self.width as usize + x as usize) * 3;
        let share = share.clamp(0.0, 1.0);
        for (part, new) in self.pixels[at..at + 3].iter_mut().zip(color) {
            *part = (f32::from(*part) + (f32::from(new) - f32::from(*part)) * share).round() as u8;
        }
    }

    /// Fills what has a negative distance, with soft edges.
    fn fill(&mut self, area: Area, color: Rgb, distance: impl Fn(f32, f32) -> f32) {
        let Area(left, top, width, height) = area;
        for y in (top as i32 - 1)..=((top + height) as i32 + 1) {
            for x in (left as i32 - 1)..=((left + width) as i32 + 1) {
                let share = 0.5 - distance(x as f32 + 0.5, y as f32 + 0.5);
                if share > 0.0 {
                    self.blend(x, y, color, share);
                }
            }
        }
    }

    /// A box with round corners.
    pub fn rounded(&mut self, area: Area, radius: f32, color: Rgb) {
        self.fill(area, color, |x, y| area.distance(radius, x, y));
    }

    /// A looking glass within a square.
    pub fn glass(&mut self, area: Area, color: Rgb) {
        let Area(left, top, side, _) = area;
        let (middle_x, middle_y, radius) = (left + side * 0.43, top + side * 0.43, side * 0.19);
        let half = side * 0.045;
        let (from, to) = (side * 0.57, side * 0.75);
        self.fill(area, color, |x, y| {
            let ring = ((x - middle_x).hypot(y - middle_y) - radius).abs() - half;
            // The nearest place of the handle, which runs down to the right.
            let along = ((x - left + y - top) / 2.0).clamp(from, to);
            let handle = (x - left - along).hypot(y - top - along) - half;
            ring.min(handle)
        });
    }

    /// A line of text, from the left on this baseline.
    pub fn text(&mut self, text: &str, style: &Style, left: f32, baseline: f32) {
        let (font, scale) = (style.font(), style.scale());
        let mut pen = left;
        for letter in text.chars() {
            let glyph = font
                .glyph_id(letter)
                .with_scale_and_position(scale, point(pen, baseline));
            if let Some(outline) = font.outline_glyph(glyph) {
                let start = outline.px_bounds().min;
                outline.draw(|x, y, share| {
                    let (x, y) = (start.x as i32 + x as i32, start.y as i32 + y as i32);
                    self.blend(x, y, style.color, share);
                });
            }
            pen += style.advance(letter);
        }
    }

    /// The picture as a PNG.
    ///
    /// # Errors
    /// None that memory can have.
    pub fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: Style = Style {
        is_strong: true,
        size: 88.0,
        color: [0; 3],
    };

    #[test]
    fn lines_keep_within_their_width_and_their_number() {
        let text = "The reading room of the old library at the harbour and everything in it";
        let lines = TITLE.wrap(text, 1024.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(
            lines.iter().all(|line| TITLE.width(line) <= 1024.0),
            "{lines:?}"
        );
        assert!(lines[1].ends_with('…'), "{lines:?}");
        let whole = TITLE.wrap(text, 1024.0, 9).join(" ");
        assert_eq!(whole, text);
        let endless = TITLE.wrap(&"x".repeat(LONGEST), 1024.0, 2);
        assert!(endless.len() == 1 && TITLE.width(&endless[0]) <= 1024.0);
    }

    #[test]
    fn what_the_font_cannot_write_is_not_half_written() {
        assert_eq!(
            writable("Caf\u{e9} \u{1f3ac} films").as_deref(),
            Some("Caf\u{e9}  films")
        );
        assert_eq!(writable("\u{6620}\u{753b} films"), None);
        assert_eq!(writable("\u{1f3ac}"), None);
    }

    #[test]
    fn shapes_and_letters_have_their_colours() {
        let mut canvas = Canvas::new(200, 100, [255; 3]);
        canvas.rounded(Area(20.0, 20.0, 100.0, 60.0), 10.0, [10, 20, 30]);
        let at = |canvas: &Canvas, x: usize, y: usize| {
            let start = (y * 200 + x) * 3;
            [0, 1, 2].map(|part| canvas.pixels[start + part])
        };
        assert_eq!(at(&canvas, 70, 50), [10, 20, 30]);
        assert_eq!(
            (at(&canvas, 20, 20), at(&canvas, 150, 50)),
            ([255; 3], [255; 3])
        );
        let before = canvas.pixels.clone();
        // Partly outside of the picture.
        canvas.text("Wide", &TITLE, 150.0, 90.0);
        assert_ne!(canvas.pixels, before);
        assert!(canvas.png().unwrap().starts_with(b"\x89PNG"));
    }
}
