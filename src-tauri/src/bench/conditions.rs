//! The state of the machine that a measurement was made on. What cannot be read is absent and stands in nobody's way.

use crate::ipc::{Circumstances, Conditions};
use crate::power;

/// The machine as it is now.
#[must_use]
pub fn read() -> Conditions {
    let memory_bytes = crate::machine::memory(None).total;
    Conditions {
        cores: std::thread::available_parallelism()
            .ok()
            .map(|n| crate::turn::count(n.get())),
        memory_bytes,
        ..system::read()
    }
}

/// Unix milliseconds.
#[must_use]
pub fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_millis() as f64)
}

/// Versions and power as they are now, for activations of a type.
#[must_use]
pub fn circumstances(dtype: Option<String>) -> Circumstances {
    Circumstances {
        app_version: env!("CARGO_PKG_VERSION").to_owned(),
        mlx_version: models::mlx_version(),
        dtype,
        power_mode: power::mode(),
        power_source: power::source(),
    }
}

/// What makes measurements comparable: chip, memory, system's kind and device, not its momentary state.
#[must_use]
pub fn machine_key(conditions: &Conditions, device: &str) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let memory = conditions.memory_bytes.map_or_else(
        || "unknown".to_owned(),
        |bytes| format!("{:.0} GiB", bytes / f64::from(1 << 30)),
    );
    format!(
        "{} | {} | {memory} | {device}",
        known(&conditions.chip),
        known(&conditions.gpu)
    )
}

#[cfg(not(target_os = "macos"))]
mod system {
    use super::text;
    use crate::ipc::Conditions;
    use crate::power;

    pub(super) fn read() -> Conditions {
        let file = |path: &str| std::fs::read_to_string(path).ok();
        let kernel = file("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned());
        let name = file("/etc/os-release").and_then(|text| text::os_name(&text));
        Conditions {
            chip: file("/proc/cpuinfo").and_then(|text| text::cpu_name(&text)),
            gpu: first_of("/proc/driver/nvidia/gpus", "information").and_then(|text| text::colon(&text, "Model")),
            os: match (name, kernel) {
                (Some(name), Some(kernel)) => Some(format!("{name}, Linux {kernel}")),
                (name, kernel) => name.or(kernel.map(|kernel| format!("Linux {kernel}"))),
            },
            power_mode: power::mode(),
            power_source: power::source(),
            thermal: hottest(),
            load: file("/proc/loadavg").and_then(|text| text::load(&text)),
            swap_used_bytes: file("/proc/meminfo").and_then(|text| text::swap_used(&text)),
            ..Conditions::default()
        }
    }

    /// A file of the first folder in `dir` that has it.
    fn first_of(dir: &str, name: &str) -> Option<String> {
        let entries = std::fs::read_dir(dir).ok()?;
        entries
            .flatten()
            .find_map(|entry| std::fs::read_to_string(entry.path().join(name)).ok())
    }

    /// The hottest of the system's sensors.
    fn hottest() -> Option<String> {
        let zones = std::fs::read_dir("/sys/class/thermal").ok()?;
        let degrees = zones.flatten().filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path().join("temp")).ok()?;
            text.trim().parse::<f64>().ok()
        });
        let most = degrees.fold(f64::NEG_INFINITY, f64::max);
        most.is_finite().then(|| format!("{:.0} °C", most / 1000.0))
    }
}

#[cfg(target_os = "macos")]
mod system {
    use std::process::Command;

    use super::text;
    use crate::ipc::Conditions;
    use crate::power;

    pub(super) fn read() -> Conditions {
        let sysctl = |name| say("/usr/sbin/sysctl", &["-n", name]);
        let version = say("/usr/bin/sw_vers", &["-productVersion"]);
        Conditions {
            chip: sysctl("machdep.cpu.brand_string"),
            os: version.map(|version| format!("macOS {version}")),
            power_mode: power::mode(),
            power_source: power::source(),
            thermal: say("/usr/bin/pmset", &["-g", "therm"]).and_then(|text| text::thermal(&text)),
            load: sysctl("vm.loadavg").and_then(|text| text::load(&text)),
            swap_used_bytes: sysctl("vm.swapusage").and_then(|text| text::swap_usage(&text)),
            ..Conditions::default()
        }
    }

    fn say(program: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    }
}

/// Reading what systems say; each is used on one of them and tested on all.
mod text {
    /// The value behind `name:`.
    #[cfg(any(not(target_os = "macos"), test))]
    pub(super) fn colon(text: &str, name: &str) -> Option<String> {
        let of = |line: &str| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        };
        text.lines().find_map(of).filter(|value| !value.is_empty())
    }

    /// Arm kernels name no model, only numbers of implementer and part.
    #[cfg(any(not(target_os = "macos"), test))]
    pub(super) fn cpu_name(text: &str) -> Option<String> {
        let arm = || {
            let (maker, part) = (colon(text, "CPU implementer")?, colon(text, "CPU part")?);
            Some(format!("Arm {maker} {part}"))
        };
        colon(text, "model name").or_else(|| colon(text, "Model")).or_else(arm)
    }

    #[cfg(any(not(target_os = "macos"), test))]
    pub(super) fn os_name(text: &str) -> Option<String> {
        let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
        Some(value.trim_matches(['"', '\'']).to_owned())
    }

    #[cfg(any(not(target_os = "macos"), test))]
    pub(super) fn swap_used(text: &str) -> Option<f64> {
        let kilobytes = |name| colon(text, name)?.split_whitespace().next()?.parse::<f64>().ok();
        Some((kilobytes("SwapTotal")? - kilobytes("SwapFree")?) * 1024.0)
    }

    /// The first three numbers of `/proc/loadavg`, or of `{ 2.10 1.90 1.80 }`.
    pub(super) fn load(text: &str) -> Option<[f64; 3]> {
        // Where the decimal sign is a comma, macOS writes one.
        let text = text.replace(',', ".");
        let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
        Some([numbers.next()?, numbers.next()?, numbers.next()?])
    }

    /// The speed limit, where there is one; else the system's first line.
    #[cfg(any(target_os = "macos", test))]
    pub(super) fn thermal(text: &str) -> Option<String> {
        let limit = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("CPU_Speed_Limit"));
        match limit.and_then(|rest| rest.split('=').nth(1)) {
            Some(percent) => Some(format!("speed limit {} %", percent.trim())),
            None => text
                .lines()
                .next()
                .map(|line| line.trim_start_matches("Note: ").to_owned()),
        }
    }

    /// `total = 2048.00M  used = 512.25M  free = …`
    #[cfg(any(target_os = "macos", test))]
    pub(super) fn swap_usage(text: &str) -> Option<f64> {
        let used = text.split("used =").nth(1)?.split_whitespace().next()?;
        let number = used.trim_end_matches(['K', 'M', 'G']).replace(',', ".");
        let unit = match used.chars().last()? {
            'K' => 1024.0,
            'M' => 1024.0 * 1024.0,
            'G' => 1024.0 * 1024.0 * 1024.0,
            _ => 1.0,
        };
        number.parse::<f64>().ok().map(|number| number * unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_says_what_it_is() {
        let cpu = "processor\t: 0\nmodel name\t: AMD EPYC 7763\nflags\t: x\n";
        assert_eq!(text::cpu_name(cpu).as_deref(), Some("AMD EPYC 7763"));
        let arm = "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(text::cpu_name(arm).as_deref(), Some("Arm 0x41 0xd0c"));
        assert_eq!(
            text::os_name("ID=x\nPRETTY_NAME=\"Some Linux 12\"\n").as_deref(),
            Some("Some Linux 12")
        );
        assert_eq!(
            text::swap_used("SwapTotal:  2048 kB\nSwapFree:  1024 kB\n"),
            Some(1_048_576.0)
        );
        assert_eq!(text::load("0.50 1.25 2.00 1/300 42"), Some([0.5, 1.25, 2.0]));
        assert_eq!(text::cpu_name(""), None);
        assert_eq!(text::load("garbage"), None);
    }

    #[test]
    fn macos_says_what_it_is() {
        assert_eq!(text::load("{ 2,10 1.90 1.80 }"), Some([2.1, 1.9, 1.8]));
        let limit = "Note: No thermal warning\nCPU_Speed_Limit \t= 80\n";
        assert_eq!(text::thermal(limit).as_deref(), Some("speed limit 80 %"));
        assert_eq!(
            text::swap_usage("total = 2048.00M  used = 512.00M  free = 1536.00M"),
            Some(536_870_912.0)
        );
    }

    #[test]
    fn this_machine_can_be_read_and_has_one_key() {
        let now = read();
        assert!(now.cores.unwrap() > 0);
        if cfg!(target_os = "linux") {
            assert!(now.load.is_some() && now.os.is_some(), "{now:?}");
        }
        let busier = Conditions {
            load: Some([99.0; 3]),
            ..now.clone()
        };
        assert_eq!(machine_key(&now, "cpu"), machine_key(&busier, "cpu"));
        assert_ne!(machine_key(&now, "cpu"), machine_key(&now, "cuda"));
        assert!(machine_key(&Conditions::default(), "cpu").contains("unknown"));
    }
}
