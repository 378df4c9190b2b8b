import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** Runs Flink SQL in this JVM: FlinkSql STATEMENTS CONFIGURATION. Statements are separated by lines of "--"; each INSERT is
 *  waited for, and its seconds are printed as a line "INSERT 1.234". The configuration has a line "key: value" for each
 *  setting. */
public class FlinkSql {
    public static void main(String[] files) throws Exception {
        Configuration configuration = new Configuration();
        for (String line : Files.readAllLines(Path.of(files[1]))) {
            int colon = line.indexOf(": ");
            configuration.setString(line.substring(0, colon), line.substring(colon + 2));
        }
        TableEnvironment tables = TableEnvironment.create(
            EnvironmentSettings.newInstance().withConfiguration(configuration).build());
        for (String statement : Files.readString(Path.of(files[0])).split("\n--\n")) {
            if (statement.strip().startsWith("INSERT")) {
                long started = System.nanoTime();
                tables.executeSql(statement).await();
                System.out.printf("INSERT %.3f%n", (System.nanoTime() - started) / 1e9);
            } else {
                tables.executeSql(statement);
            }
        }
        System.exit(0);
    }
}
