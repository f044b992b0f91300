//! The one template grammar.
