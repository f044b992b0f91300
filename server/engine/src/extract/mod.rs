//! Files to parts of text and pixels.
