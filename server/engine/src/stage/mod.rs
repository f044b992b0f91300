//! The stages of a retriever and the plan that runs them.
