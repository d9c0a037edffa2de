# shellcheck shell=bash
# What scripts have in common that make something to be passed on, with other projects' licences; to be sourced.

# Libraries under the GPL alone would put what is passed on under it, too.
# shellcheck disable=SC2034  # for the script
under_the_gpl='^lib(jbig|fftw3)'

# package_of FILE: the distribution's package that it comes from, or nothing.
package_of() {
  local name
  name="$(dpkg-query -S "$(realpath "$1")" 2>/dev/null || dpkg-query -S "*/${1##*/}" 2>/dev/null || true)"
  echo "${name%%:*}"
}

# cached BUILD NAME: what CMake has in its cache there.
cached() { sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt"; }

# has_cuda BUILD: whether it is one with CUDA.
has_cuda() { grep -q -- -DSLIDESTREAM_HAVE_CUDA=1 "$1/build.ninja" 2>/dev/null; }

# cuda_licence BUILD: the file, which may not be there, for the runtime that a build with CUDA has in it.
cuda_licence() {
  local compiler cuda file
  # The compiler may be a script elsewhere that calls the one of the toolkit, which knows where it lies.
  compiler="$(cached "$1" CMAKE_CUDA_COMPILER)"
  cuda="$("$compiler" --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')"
  cuda="$(realpath "${cuda:-$(dirname "$compiler")/..}")"
  # Where it lies depends on how CUDA was installed.
  for file in "$cuda"/EULA.txt "$cuda"/LICENSE /usr/share/doc/cuda-cudart-*/copyright \
    "$cuda"/dist-info/nvidia_cuda_runtime-*/licenses/License.txt; do
    if [[ -f "$file" ]]; then break; fi
  done
  echo "$file"
}
