package changelogbridge;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;

/**
 * Commits to a Delta table on S3 by a conditional request (If-None-Match: *): of several drivers that commit one
 * version, one succeeds, and the others get FileAlreadyExistsException, as LogStore.write promises. Delta's own
 * store for S3 looks whether the file is there before it writes, so two drivers may both succeed. See docs/adr/033.
 *
 * <p>It needs Hadoop 3.4.2 or newer, and refuses to write where fs.s3a.create.conditional.enabled is false.
 */
public class ConditionalLogStore extends S3SingleDriverLogStore {
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
  private static final String WRITER = "bridge-writer";
  private static final int ATTEMPTS = 5;

  public ConditionalLogStore(Configuration hadoopConf) {
    super(hadoopConf);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration hadoopConf)
      throws IOException {
    if (overwrite) {
      super.write(path, actions, true, hadoopConf);
      return;
    }
    FileSystem system = path.getFileSystem(hadoopConf);
    if (!system.hasPathCapability(path, CONDITIONAL)) {
      throw new IOException(
          path + ": this file system makes no conditional requests, so a commit could overwrite another one; switch on "
              + "fs.s3a.create.conditional.enabled, or use Hadoop 3.4.2 or newer");
    }
    StringBuilder text = new StringBuilder();
    while (actions.hasNext()) {
      text.append(actions.next()).append('\n');
    }
    create(system, path, text.toString().getBytes(StandardCharsets.UTF_8));
  }

  private static void create(FileSystem system, Path path, byte[] content) throws IOException {
    // A response may get lost, and the client repeats the request: the object that is there may be our own.
    String writer = UUID.randomUUID().toString();
    for (int attempt = 1; ; attempt++) {
      FSDataOutputStreamBuilder<?, ?> builder = system.createFile(path);
      builder.recursive().must(CONDITIONAL, true).opt("fs.s3a.create.header." + WRITER, writer);
      FSDataOutputStream stream = builder.build();
      try {
        stream.write(content);
      } catch (IOException | RuntimeException failed) {
        stream.abort();
        throw failed;
      }
      try {
        stream.close();
        return;
      } catch (IOException failed) {
        String there = writerOf(system, path);
        if (writer.equals(there)) {
          return;
        }
        if (there != null || failed instanceof RemoteFileChangedException) {
          FileAlreadyExistsException lost = new FileAlreadyExistsException(path.toString());
          lost.initCause(failed);
          throw lost;
        }
        // 409: another request for the object was under way, and did not succeed.
        if (attempt == ATTEMPTS || !String.valueOf(failed).contains("Status Code: 409")) {
          throw failed;
        }
        pause(attempt);
      }
    }
  }

  /** Who wrote the object; empty for another program, null where there is no object. */
  private static String writerOf(FileSystem system, Path path) throws IOException {
    try {
      byte[] found = system.getXAttrs(path).get("header." + WRITER);
      return found == null ? "" : new String(found, StandardCharsets.UTF_8);
    } catch (FileNotFoundException none) {
      return null;
    }
  }

  private static void pause(int attempt) throws IOException {
    try {
      Thread.sleep(100L * attempt);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IOException(interrupted);
    }
  }
}
