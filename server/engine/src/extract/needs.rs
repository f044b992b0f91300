//! What extractors need besides embedding models, and whether this server has it.

use super::tools::{Tool, Tools};

/// Something that an installation may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// Sounds and films: ffmpeg.
    Media,
    /// Texts in pictures: tesseract.
    Ocr,
    /// Pages of PDFs as pictures: poppler.
    PagesAsPictures,
    /// A speech model.
    Speech,
    /// A language model.
    Language,
    /// A language model that looks at pictures.
    Sight,
    /// A part of this server that does not exist, with the words for it.
    Never(&'static str),
}

impl Need {
    /// How the catalogue calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Media => "ffmpeg",
            Self::Ocr => "tesseract",
            Self::PagesAsPictures => "pdftoppm",
            Self::Speech => "speech model",
            Self::Language | Self::Sight => "language model",
            Self::Never(_) => "model",
        }
    }
}

/// The programs and endpoints of this server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Services {
    pub tools: Tools,
    pub speech: bool,
    pub language: bool,
    /// The language model looks at pictures.
    pub sight: bool,
}

impl Services {
    /// Why something is missing, and what to do about it; `None` when it is there.
    pub fn lacks(&self, need: Need) -> Option<String> {
        let tool = |tool: Tool| (!self.tools.has(tool)).then(|| tool.missing());
        match need {
            Need::Media => self.tools.media().err(),
            Need::Ocr => tool(Tool::Tesseract),
            Need::PagesAsPictures => tool(Tool::Pdftoppm),
            Need::Speech => (!self.speech).then(|| {
                "no speech model is connected to this server: configure models.transcription, an \
                 OpenAI-compatible endpoint"
                    .to_owned()
            }),
            Need::Language => (!self.language).then(|| {
                "no language model is connected to this server: configure models.language, an \
                 OpenAI-compatible endpoint"
                    .to_owned()
            }),
            Need::Sight => (!self.sight).then(|| {
                "no language model that looks at pictures is connected to this server: configure \
                 models.language with pictures = true"
                    .to_owned()
            }),
            Need::Never(words) => Some(words.to_owned()),
        }
    }
}
