"""Images as libvips and OpenSlide read them, by their libraries: a process for each image takes longer than most images."""

import ctypes
import functools

import numpy

# VipsBandFormat
VIPS_TYPES = {0: "u1", 2: "u2", 6: "f4"}


def library(*names):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


warnings = []


@ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def note_warning(_domain, _level, message, _data):
    warnings.append(message.decode())


@functools.lru_cache(maxsize=1)
def glib():
    return library("libgobject-2.0.so.0")


@functools.lru_cache(maxsize=1)
def vips():
    """libvips, or None. It keeps no file open, and nothing of one that was read."""
    found = library("libvips.so.42")
    if found is None:
        return None
    found.vips_error_buffer.restype = ctypes.c_char_p
    found.vips_image_new_from_file.restype = ctypes.c_void_p
    found.vips_image_write_to_memory.restype = ctypes.c_void_p
    found.vips_image_get_xres.restype = ctypes.c_double
    found.vips_init(b"tests")
    glib().g_log_set_default_handler(note_warning, None)
    found.vips_cache_set_max(0)
    return found


def vips_pixels(file, option=""):
    """(height, width, bands) of an image, `option` being what stands in brackets behind its name; OSError says why there is
    none."""
    name = f"{file}[{option}]" if option else str(file)
    # What a thread of an earlier image said after that image had failed is no word of this one.
    vips().vips_error_clear()
    warnings.clear()
    image = vips().vips_image_new_from_file(name.encode(), None)
    data = None
    try:
        if image:
            image = ctypes.c_void_p(image)
            width, height, bands, form = (getattr(vips(), f"vips_image_get_{what}")(image)
                                          for what in ("width", "height", "bands", "format"))
            size = ctypes.c_size_t()
            data = vips().vips_image_write_to_memory(image, ctypes.byref(size))
        # Of a damaged part there is a word, and the image comes all the same.
        said = vips().vips_error_buffer().decode() + "\n".join(warnings)
        vips().vips_error_clear()
        if not data or said:
            raise OSError(f"{name}: {said}")
        return numpy.frombuffer(ctypes.string_at(data, size.value), VIPS_TYPES[form]).reshape(height, width, bands)
    finally:
        if data:
            glib().g_free(ctypes.c_void_p(data))
        if image:
            glib().g_object_unref(image)


def vips_resolution(file):
    """Pixels of a millimetre along x."""
    image = ctypes.c_void_p(vips().vips_image_new_from_file(str(file).encode(), None))
    try:
        return vips().vips_image_get_xres(image)
    finally:
        glib().g_object_unref(image)


@functools.lru_cache(maxsize=1)
def openslide():
    """OpenSlide, or None."""
    found = library("libopenslide.so.1", "libopenslide.so.0")
    if found is not None:
        found.openslide_open.restype = ctypes.c_void_p
        found.openslide_get_error.restype = ctypes.c_char_p
        found.openslide_get_property_value.restype = ctypes.c_char_p
        found.openslide_get_version.restype = ctypes.c_char_p
    return found


class OpenSlide:
    """A slide that OpenSlide opens; OSError says why it doesn't."""

    def __init__(self, file):
        self.file = file
        self.handle = openslide().openslide_open(str(file).encode())
        if not self.handle:
            raise OSError(f"{file}: no slide for OpenSlide")
        self.handle = ctypes.c_void_p(self.handle)
        try:
            self.check()
        except OSError:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        openslide().openslide_close(self.handle)

    def check(self):
        error = openslide().openslide_get_error(self.handle)
        if error is not None:
            raise OSError(f"{self.file}: {error.decode()}")

    @property
    def sizes(self):
        """(width, height) of every level."""
        sizes = []
        for level in range(openslide().openslide_get_level_count(self.handle)):
            width, height = ctypes.c_int64(), ctypes.c_int64()
            openslide().openslide_get_level_dimensions(self.handle, level, ctypes.byref(width), ctypes.byref(height))
            sizes.append((width.value, height.value))
        return sizes

    def property(self, name):
        """Its text, or None."""
        value = openslide().openslide_get_property_value(self.handle, name.encode())
        return None if value is None else value.decode()

    def region(self, level, width, height, x=0, y=0):
        """RGBA, premultiplied, of (height, width, 4); x and y are in pixels of level 0."""
        pixels = numpy.zeros((height, width), "<u4")
        openslide().openslide_read_region(self.handle, pixels.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(x),
                                          ctypes.c_int64(y), level, ctypes.c_int64(width), ctypes.c_int64(height))
        self.check()
        return pixels.view("u1").reshape(height, width, 4)[..., [2, 1, 0, 3]]

    def level(self, number):
        """RGB of a whole level, in one piece: asked for in several, OpenSlide 3.4.1 shifts levels that aren't exactly half
        as large as others."""
        return numpy.ascontiguousarray(self.region(number, *self.sizes[number])[..., :3])
