//! How the machine is powered, as far as it changes how fast it computes. The only place that asks the system for it.

/// In a few words, e.g. `low power, battery`; empty where nothing can be read.
#[must_use]
pub fn power_mode() -> String {
    let parts = [mode(), source()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The system's own mode, e.g. `low power` or a profile's name.
#[must_use]
pub fn mode() -> Option<String> {
    system::mode()
}

/// `mains` or `battery`.
#[must_use]
pub fn source() -> Option<String> {
    system::source()
}

#[cfg(target_os = "macos")]
mod system {
    use std::process::Command;

    pub(super) fn mode() -> Option<String> {
        let settings = pmset(&["-g"])?;
        let low = super::setting(&settings, "powermode").or_else(|| super::setting(&settings, "lowpowermode"));
        Some(match low? {
            "0" => "normal power".to_owned(),
            "1" => "low power".to_owned(),
            "2" => "high power".to_owned(),
            other => format!("power mode {other}"),
        })
    }

    pub(super) fn source() -> Option<String> {
        let first = pmset(&["-g", "ps"])?;
        Some(
            if first.contains("Battery Power") {
                "battery"
            } else {
                "mains"
            }
            .to_owned(),
        )
    }

    fn pmset(arguments: &[&str]) -> Option<String> {
        let output = Command::new("/usr/bin/pmset").args(arguments).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[cfg(not(target_os = "macos"))]
mod system {
    use std::path::Path;

    pub(super) fn mode() -> Option<String> {
        let read = |path: &str| Some(std::fs::read_to_string(path).ok()?.trim().to_owned());
        let profile = read("/sys/firmware/acpi/platform_profile");
        let governor = || read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        profile.or_else(governor).filter(|mode| !mode.is_empty())
    }

    pub(super) fn source() -> Option<String> {
        let supplies = std::fs::read_dir("/sys/class/power_supply").ok()?;
        let online = supplies.filter_map(|supply| mains(&supply.ok()?.path()));
        // Several plugs: one that is in is enough.
        let is_on = online.reduce(|a, b| a || b)?;
        Some(if is_on { "mains" } else { "battery" }.to_owned())
    }

    fn mains(supply: &Path) -> Option<bool> {
        let kind = std::fs::read_to_string(supply.join("type")).ok()?;
        (kind.trim() == "Mains").then_some(())?;
        Some(std::fs::read_to_string(supply.join("online")).ok()?.trim() == "1")
    }
}

/// The value of `name` in lines of `name value`.
#[cfg(any(target_os = "macos", test))]
fn setting<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == name).then(|| words.next())?
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_setting_is_found_by_its_name() {
        let text = "System-wide power settings:\nCurrently in use:\n standby              1\n lowpowermode         1\n";
        assert_eq!(super::setting(text, "lowpowermode"), Some("1"));
        assert_eq!(super::setting(text, "powermode"), None);
    }
}
