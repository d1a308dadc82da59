//! How much memory MLX is told to get along with.

use std::sync::OnceLock;

use super::ffi;

/// Sets MLX's limit for the whole process; without a number, the one it began with.
pub(crate) fn limit(bytes: Option<u64>) {
    static OWN: OnceLock<usize> = OnceLock::new();
    ffi::init();
    let Ok(now) = mlx_rs::memory::memory_limit() else {
        return;
    };
    let own = *OWN.get_or_init(|| now);
    let wanted = bytes.map_or(own, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if wanted != now {
        // A limit that is not taken leaves the one there was, which is a guideline as well.
        let _ = mlx_rs::memory::set_memory_limit(wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_until_there_is_none() {
        let now = || mlx_rs::memory::memory_limit().unwrap();
        limit(None);
        let own = now();
        limit(Some(3 << 30));
        assert_eq!(now(), 3 << 30);
        limit(None);
        assert_eq!(now(), own);
    }
}
