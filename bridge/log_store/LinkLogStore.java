package changelogbridge;

import io.delta.storage.HDFSLogStore;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Commits to a Delta table on a local disk by a hard link, which never replaces a file: of several processes that
 * commit one version, one succeeds. Delta's own store looks whether the file is there and renames, and a rename
 * replaces what another process has put there in between. See docs/adr/062.
 *
 * <p>The data files that a commit adds, and the commit, are on the disk (fsync) before the commit has its name. Where
 * the file system has no hard links, Delta's rename is used.
 */
public class LinkLogStore extends HDFSLogStore {
  private static final Pattern ADDED = Pattern.compile("^\\{\"(?:add|cdc)\":\\{\"path\":\"([^\"\\\\]*)\"");
  private static final Pattern MARKS =
      Pattern.compile("\"storageType\":\"u\",\"pathOrInlineDv\":\"([^\"\\\\]*)([^\"\\\\]{20})\"");
  private static final String DIGITS =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

  public LinkLogStore(Configuration hadoopConf) {
    super(hadoopConf);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration hadoopConf)
      throws IOException {
    if (overwrite) {
      super.write(path, actions, true, hadoopConf);
      return;
    }
    List<String> lines = new ArrayList<>();
    actions.forEachRemaining(lines::add);
    java.nio.file.Path commit = java.nio.file.Path.of(path.toUri().getPath());
    java.nio.file.Path folder = commit.getParent();
    Files.createDirectories(folder);
    if (Files.exists(commit)) {
      throw new FileAlreadyExistsException(commit.toString());
    }
    syncAdded(folder.getParent(), lines);
    java.nio.file.Path scratch = folder.resolve("." + commit.getFileName() + "." + UUID.randomUUID() + ".tmp");
    try {
      Files.writeString(scratch, String.join("\n", lines) + "\n", StandardCharsets.UTF_8);
      sync(scratch);
      link(commit, scratch, path, lines, hadoopConf);
    } finally {
      Files.deleteIfExists(scratch);
    }
    sync(folder);
  }

  private void link(
      java.nio.file.Path commit, java.nio.file.Path scratch, Path path, List<String> lines, Configuration hadoopConf)
      throws IOException {
    try {
      Files.createLink(commit, scratch);
    } catch (FileAlreadyExistsException lost) {
      throw lost;
    } catch (FileSystemException | UnsupportedOperationException withoutLinks) {
      super.write(path, lines.iterator(), false, hadoopConf);
    }
  }

  /** Put the data files that a commit adds, and their names in their folders, on the disk. */
  private static void syncAdded(java.nio.file.Path table, List<String> lines) throws IOException {
    Set<java.nio.file.Path> files = new LinkedHashSet<>();
    for (String line : lines) {
      Matcher added = ADDED.matcher(line);
      if (!added.find()) {
        continue;
      }
      // A path in the log is a URI; one with a scheme is of another table (a shallow clone), whose commit has synced it.
      URI uri = URI.create(added.group(1));
      if (uri.getScheme() == null && uri.getPath() != null) {
        files.add(table.resolve(uri.getPath()));
      }
      Matcher marks = MARKS.matcher(line);
      if (marks.find()) {
        String name = "deletion_vector_" + uuid(marks.group(2)) + ".bin";
        files.add(table.resolve(marks.group(1)).resolve(name));
      }
    }
    Set<java.nio.file.Path> folders = new LinkedHashSet<>();
    for (java.nio.file.Path file : files) {
      try {
        sync(file);
      } catch (NoSuchFileException elsewhere) {
        continue; // only executors see it
      }
      for (java.nio.file.Path in = file.getParent(); in.startsWith(table); in = in.getParent()) {
        folders.add(in);
      }
    }
    for (java.nio.file.Path one : folders) {
      sync(one);
    }
  }

  /** The UUID that Delta's protocol writes in base 85. */
  private static UUID uuid(String encoded) {
    ByteBuffer bytes = ByteBuffer.allocate(16);
    for (int at = 0; at < encoded.length(); at += 5) {
      long word = 0;
      for (char digit : encoded.substring(at, at + 5).toCharArray()) {
        word = word * 85 + DIGITS.indexOf(digit);
      }
      bytes.putInt((int) word);
    }
    return new UUID(bytes.getLong(0), bytes.getLong(8));
  }

  private static void sync(java.nio.file.Path path) throws IOException {
    try (FileChannel opened = FileChannel.open(path, StandardOpenOption.READ)) {
      opened.force(true);
    }
  }
}
