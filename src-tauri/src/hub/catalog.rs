//! Pairs of models and drafters that are known to fit.
