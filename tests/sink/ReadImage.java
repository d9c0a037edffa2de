import java.nio.file.Files;
import java.nio.file.Path;
import loci.common.services.ServiceFactory;
import loci.formats.FormatTools;
import loci.formats.ImageReader;
import loci.formats.meta.IMetadata;
import loci.formats.services.OMEXMLService;

/**
 * What Bio-Formats reads: `java -cp bioformats_package.jar ReadImage.java FILE FOLDER ...` writes the pixels of every
 * level to FOLDER/LEVEL.raw, row by row and interleaved, and prints a line a level.
 */
public class ReadImage {
  public static void main(String[] arguments) throws Exception {
    loci.common.DebugTools.setRootLevel("ERROR");
    for (int i = 0; i + 1 < arguments.length; i += 2) {
      read(arguments[i], arguments[i + 1]);
    }
  }

  private static void read(String file, String folder) throws Exception {
    OMEXMLService service = new ServiceFactory().getInstance(OMEXMLService.class);
    IMetadata metadata = service.createOMEXMLMetadata();
    try (ImageReader reader = new ImageReader()) {
      reader.setFlattenedResolutions(false);
      reader.setMetadataStore(metadata);
      reader.setId(file);
      System.out.println("file=" + file + " format=" + reader.getFormat().replace(' ', '_') + " series=" + reader.getSeriesCount()
          + " levels=" + reader.getResolutionCount() + " images=" + reader.getImageCount()
          + " name=" + metadata.getImageName(0)
          + " mpp=" + (metadata.getPixelsPhysicalSizeX(0) == null ? "none"
              : metadata.getPixelsPhysicalSizeX(0).value(ome.units.UNITS.MICROMETER).toString())
          + " magnification=" + (metadata.getInstrumentCount() == 0 ? "none"
              : metadata.getObjectiveNominalMagnification(0, 0).toString()));
      for (int level = 0; level < reader.getResolutionCount(); ++level) {
        reader.setResolution(level);
        byte[] pixels = reader.openBytes(0);
        int samples = reader.getRGBChannelCount();
        int bytes = FormatTools.getBytesPerPixel(reader.getPixelType());
        if (samples > 1 && !reader.isInterleaved()) pixels = interleaved(pixels, samples, bytes);
        Files.write(Path.of(folder, level + ".raw"), pixels);
        System.out.println("level=" + level + " width=" + reader.getSizeX() + " height=" + reader.getSizeY()
            + " samples=" + samples + " type=" + FormatTools.getPixelTypeString(reader.getPixelType()));
      }
    }
  }

  private static byte[] interleaved(byte[] planes, int samples, int bytes) {
    byte[] pixels = new byte[planes.length];
    int plane = planes.length / samples;
    for (int at = 0; at < planes.length; ++at) {
      int sample = at / plane;
      int pixel = at % plane / bytes;
      pixels[(pixel * samples + sample) * bytes + at % bytes] = planes[at];
    }
    return pixels;
  }
}
