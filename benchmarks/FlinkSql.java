import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** Runs Flink SQL in this JVM: FlinkSql STATEMENTS CONFIGURATION. Statements are separated by lines of "--"; each INSERT is
 *  waited for. The configuration has a line "key: value" for each setting. */
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
                tables.executeSql(statement).await();
            } else {
                tables.executeSql(statement);
            }
        }
        System.exit(0);
    }
}
