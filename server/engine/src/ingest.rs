//! One chunk of a batch: objects in, documents with vectors and failures with reasons out.
