#!/usr/bin/env bash
# Type-checks the macOS build on Debian 12, with the toolchain whose standard library Debian has the source of.
# usage: tests/mac-check/check.sh [cargo check arguments]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/target/mac

missing=()
for package in rustc-web cargo-web rust-web-src; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  apt-get -o DPkg::Lock::Timeout=600 update -q >/dev/null
  apt-get -o DPkg::Lock::Timeout=600 install -y -q --no-install-recommends "${missing[@]}" >/dev/null
fi

mkdir -p "$work/MacOSX.sdk"
# mlx-sys's build script wants an Apple compiler; the bindings that setup.sh made serve as well for types.
cat >"$work/mlx.toml" <<TOML
[target.aarch64-apple-darwin.mlx]
rustc-link-lib = ["dylib=mlxc"]
rustc-env = { OUT_DIR = "$root/target/native/bindings" }
TOML

export RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc CARGO_TARGET_DIR=$work
export CC_aarch64_apple_darwin=$here/clang CXX_aarch64_apple_darwin=$here/clang
export AR_aarch64_apple_darwin=$here/ar RANLIB_aarch64_apple_darwin=$here/ar
export SDKROOT=$work/MacOSX.sdk MACOSX_DEPLOYMENT_TARGET=14.0 # with an SDK named, cc-rs does not call xcrun
cd "$root"
exec /usr/bin/cargo check --config "$work/mlx.toml" -Zbuild-std=std,panic_unwind \
  --target aarch64-apple-darwin --workspace --all-targets --locked "$@"
