"""What bundles and wheels may hold of other projects' libraries."""

# Libraries whose terms were read and let programs under other licences be passed on with them. One that isn't here is
# for a person to look at.
PERMISSIVE = {
    "libLerc": "Apache-2.0", "libaec": "BSD-2-Clause", "libcharls": "BSD-3-Clause", "libcupti": "NVIDIA's, which lets it be passed on",
    "libdeflate": "MIT", "libfmt": "MIT",
    "libgcc_s": "GPL-3 with the exception for programs that use it", "libhwy": "Apache-2.0 or BSD-3-Clause",
    "libjpeg": "IJG, BSD-3-Clause and zlib", "libkissfft-float": "BSD-3-Clause", "liblcms2": "MIT", "liblzma": "public domain",
    "libopenjp2": "BSD-2-Clause", "libpugixml": "MIT", "libsharpyuv": "BSD-3-Clause", "libspdlog": "MIT", "libsqlite3": "public domain",
    "libsz": "BSD-2-Clause", "libstdc++": "GPL-3 with the exception for programs that use it", "libtbb": "Apache-2.0", "libtiff": "libtiff's",
    "libtomlplusplus": "MIT", "libwebp": "BSD-3-Clause",
    "libblosc": "BSD-3-Clause", "liblz4": "BSD-2-Clause", "liburing": "LGPL-2.1 or MIT", "libsnappy": "BSD-3-Clause", "libz": "zlib", "libzstd": "BSD-3-Clause or GPL-2"}
