#!/usr/bin/env bash
# Gets MLX ready for `cargo build`. usage: models/native/setup.sh [cpu|cuda]
#
# Linux: takes a prebuilt libmlx.so from PyPI, builds libmlxc.so and the Rust bindings from cargo's own copy of
# mlx-sys, and writes target/native/cargo-config.toml, which .cargo/config.toml includes.
# macOS: mlx-sys builds MLX itself, so only its tools are checked.
# Without an argument the last choice stands; at first it is cuda where there is an NVIDIA GPU, else cpu.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/target/native

step() { printf '[native] %s\n' "$*"; }
fail() { printf '[native] %s\n' "$@" >&2; exit 1; }

if [ "$(uname -s)" = Darwin ]; then
  xcrun --find metal >/dev/null 2>&1 || fail "Apple's Metal compiler is missing. It comes with Xcode:" \
    "  install Xcode from the App Store, then: sudo xcode-select -s /Applications/Xcode.app" \
    "  and, from Xcode 26 on: xcodebuild -downloadComponent MetalToolchain"
  command -v cmake >/dev/null || fail "cmake is missing. Install it with: brew install cmake"
  step "macOS: nothing to prepare, cargo builds MLX with Metal (some minutes the first time)"
  exit 0
fi
[ "$(uname -s)" = Linux ] || fail "Slipstream runs on macOS and Linux, not on $(uname -s)."

case $(uname -m) in
x86_64) triple=x86_64-unknown-linux-gnu ;;
aarch64 | arm64) triple=aarch64-unknown-linux-gnu ;;
*) fail "MLX has no Linux build for $(uname -m): x86_64 and aarch64 only." ;;
esac

has_gpu() { # CUDA 13 needs driver 580
  local driver
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | cut -d. -f1) || return 1
  [[ $driver =~ ^[0-9]+$ ]] && [ "$driver" -ge 580 ]
}

kind=${1:-}
[ -n "$kind" ] || kind=$(cat "$out/kind" 2>/dev/null) || if has_gpu; then kind=cuda; else kind=cpu; fi
case $kind in
cpu) package=mlx-cpu ;;
cuda) package=mlx-cuda-13 ;;
*) fail "usage: models/native/setup.sh [cpu|cuda]" ;;
esac
lib=$out/$kind/mlx/lib

# Everything that the result depends on; a line that does not match sends us through the steps again.
sum() { cat "$@" | sha256sum | cut -c1-64; }
mlx_sys=$(grep -A1 '^name = "mlx-sys"$' "$root/Cargo.lock" | tail -n 1)
stamp="$kind $triple $root $mlx_sys $(sum "$here"/{setup.sh,CMakeLists.txt,MLXConfig.cmake,compat.h,apple_shim.c,requirements.txt} \
  "$here"/bindings/{Cargo.lock,src/main.rs})"
if [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ] && [ -e "$lib/libmlxc.so" ] && [ -e "$lib/libmlx.so" ] &&
  [ -e "$out/bindings/bindings.rs" ] && [ -e "$out/cargo-config.toml" ]; then
  step "MLX ($kind) is ready"
  exit 0
fi
step "preparing MLX ($kind, $triple) in target/native; this is done once"
mkdir -p "$out"
rm -f "$out/stamp"

missing=()
command -v c++ >/dev/null || missing+=(build-essential)
command -v cmake >/dev/null || missing+=(cmake)
command -v ninja >/dev/null || missing+=(ninja-build)
[ -n "$(find /usr/lib /usr/lib64 \( -name 'libclang.so*' -o -name 'libclang-[0-9]*.so*' \) -print -quit 2>/dev/null)" ] || missing+=(libclang-dev)
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
if [ ${#missing[@]} -gt 0 ]; then
  install="apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends ${missing[*]}"
  command -v apt-get >/dev/null || fail "missing: ${missing[*]} (Debian's names). Install them, then run this again."
  if [ "$(id -u)" = 0 ]; then sudo=; elif sudo -n true 2>/dev/null; then sudo="sudo "; else
    fail "missing: ${missing[*]}. Run" "  sudo apt-get update && sudo $install" "then run this again."
  fi
  step "installing ${missing[*]}"
  ${sudo}apt-get -o DPkg::Lock::Timeout=600 update -qq && DEBIAN_FRONTEND=noninteractive ${sudo}$install -qq >/dev/null
fi
command -v cargo >/dev/null || fail "cargo is missing. Install Rust 1.95 or newer: https://rustup.rs"

# 1 libmlx.so
wheel=$(grep "^$package==" "$here/requirements.txt")
if [ "$(cat "$out/$kind/requirements.txt" 2>/dev/null)" != "$wheel" ]; then
  step "1/4 fetching ${wheel%% *} from PyPI"
  rm -rf "$out/wheel" "$out/$kind" "$out/$kind.new"
  mkdir -p "$out/wheel"
  echo "$wheel" >"$out/wheel/requirements.txt"
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    -d "$out/wheel" -r "$out/wheel/requirements.txt"
  python3 -m zipfile -e "$out"/wheel/*.whl "$out/$kind.new"
  cp "$out/wheel/requirements.txt" "$out/$kind.new/"
  mv "$out/$kind.new" "$out/$kind"
  rm -rf "$out/wheel"
else
  step "1/4 libmlx.so is there"
fi

if [ "$kind" = cuda ] && [ ! -e "$out/cuda/nvidia" ]; then
  # libmlx.so looks for CUDA's libraries in ../../nvidia, where pip's nvidia-* packages put them.
  site=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
  if [ -n "$site" ] && [ -n "$(find "$site" -name 'libcudnn.so.9' -print -quit)" ] &&
    [ -n "$(find "$site" -name 'libcublasLt.so.13' -print -quit)" ]; then
    step "    using the CUDA libraries in $site"
    ln -sfn "$site" "$out/cuda/nvidia"
  else
    step "    fetching CUDA's libraries from PyPI (about 1.5 GB)"
    grep '^nvidia-' "$here/requirements.txt" >"$out/cuda.txt"
    python3 -m pip install -q --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
      --target "$out/cuda" -r "$out/cuda.txt"
  fi
fi

# 2 mlx-c's source, as cargo has it
step "2/4 fetching crates"
mlx_c=$(cd "$root" && cargo metadata ${CI:+-q} --locked --format-version 1 --filter-platform "$triple" | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(next(os.path.dirname(p["manifest_path"]) for p in packages if p["name"] == "mlx-sys"))')/src/mlx-c

# 3 libmlxc.so; one serves both kinds, their headers are the same
step "3/4 building libmlxc.so (about a minute)"
build=$out/build-$kind
grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$here" "$build/CMakeCache.txt" || rm -rf "$build"
cmake -S "$here" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=14 \
  -DMLX_C_DIR="$mlx_c" -DMLX_DIR="$here" -DMLX_PREFIX="$out/$kind/mlx" >"$out/cmake.log" 2>&1 ||
  { tail -n 30 "$out/cmake.log" >&2; fail "cmake failed; the whole log is target/native/cmake.log"; }
cmake --build "$build" >>"$out/cmake.log" 2>&1 ||
  { tail -n 30 "$out/cmake.log" >&2; fail "libmlxc.so did not build; the whole log is target/native/cmake.log"; }
cp "$build/mlx-c/libmlxc.so" "$lib/libmlxc.so.new"
mv "$lib/libmlxc.so.new" "$lib/libmlxc.so"

# 4 bindings.rs, beside which mlx-sys is told that its build script has run
step "4/4 generating the Rust bindings (about half a minute)"
(cd "$here/bindings" && cargo run -q --locked --target-dir "$out/bindings-build" -- "$mlx_c" "$here/compat.h" "$out/bindings.new")
mkdir -p "$out/bindings"
# The same bindings keep their time, so that cargo does not build everything again.
cmp -s "$out/bindings.new/bindings.rs" "$out/bindings/bindings.rs" || cp "$out/bindings.new/bindings.rs" "$out/bindings/bindings.rs"
rm -rf "$out/bindings.new" "$out/bindings-build"

cat >"$out/cargo-config.toml" <<TOML
# Written by models/native/setup.sh.
[target.$triple.mlx]
rustc-link-search = ["native=$lib"]
rustc-link-lib = ["dylib=mlxc"]
rustc-env = { OUT_DIR = "$out/bindings" }
# Not a key of cargo's: build scripts see it as DEP_MLX_LIBDIR.
libdir = "$lib"
TOML
echo "$kind" >"$out/kind"
echo "$stamp" >"$out/stamp"
step "MLX ($kind) is ready"
