import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** Runs many scripts in this JVM: FlinkScripts STATEMENTS CONFIGURATION. The configuration has a line "key: value" for each
 *  setting. Statements are separated by lines of "--"; one that begins with "SCRIPT name" begins a script with tables of its
 *  own. Each INSERT is waited for. Prints a line "SCRIPT name 1.234" for each script with its seconds, or
 *  "SCRIPT name FAILED message" for one that failed, of which no more statements are run. */
public class FlinkScripts {
    private static final Pattern SET = Pattern.compile("SET\\s+'([^']*)'\\s*=\\s*'([^']*)'");

    public static void main(String[] files) throws Exception {
        Configuration configuration = new Configuration();
        for (String line : Files.readAllLines(Path.of(files[1]))) {
            int colon = line.indexOf(": ");
            configuration.setString(line.substring(0, colon), line.substring(colon + 2));
        }
        TableEnvironment tables = null;
        String name = null;
        String failure = null;
        long started = 0;
        for (String written : Files.readString(Path.of(files[0])).split("\n--\n")) {
            String statement = written.strip();
            if (statement.startsWith("SCRIPT ")) {
                report(name, failure, started);
                name = statement.substring(7);
                failure = null;
                started = System.nanoTime();
                tables = TableEnvironment.create(
                    EnvironmentSettings.newInstance().withConfiguration(configuration).build());
            } else if (failure == null) {
                try {
                    execute(tables, statement);
                } catch (Throwable error) {
                    failure = reasons(error);
                }
            }
        }
        report(name, failure, started);
        System.exit(0);
    }

    private static void execute(TableEnvironment tables, String statement) throws Exception {
        Matcher set = SET.matcher(statement);
        if (set.matches()) {
            tables.getConfig().set(set.group(1), set.group(2));
        } else if (statement.startsWith("INSERT") || statement.startsWith("EXECUTE")) {
            tables.executeSql(statement).await();
        } else {
            tables.executeSql(statement);
        }
    }

    private static String reasons(Throwable error) {
        StringBuilder text = new StringBuilder();
        for (Throwable one = error; one != null; one = one.getCause()) {
            text.append(text.length() == 0 ? "" : " <- ").append(one.getMessage());
        }
        return text.toString().replaceAll("\\s+", " ");
    }

    private static void report(String name, String failure, long started) {
        if (name == null) {
            return;
        }
        if (failure == null) {
            System.out.printf("SCRIPT %s %.3f%n", name, (System.nanoTime() - started) / 1e9);
        } else {
            System.out.printf("SCRIPT %s FAILED %s%n", name, failure);
        }
        System.out.flush();
    }
}
