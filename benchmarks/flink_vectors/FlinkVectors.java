import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.lang.reflect.Array;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Evaluates expressions in Flink: FlinkVectors TABLE EXPRESSIONS RESULTS [GROUPS]. TABLE is a file with the statement that makes the
 *  table `inputs`, whose column `rid` counts its rows. EXPRESSIONS is a JSON list; each is evaluated over all rows. RESULTS gets
 *  a line of JSON for each: its type and values by row, an error in place of a value, or why the planner refuses it.
 *  With GROUPS, which is a clause, they are aggregates and have a value for each `rid`. */
public class FlinkVectors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int AT_ONCE = 40;
    private static TableEnvironment tables;
    private static int rows;
    private static String groups = "";

    public static void main(String[] files) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("rest.port", "0");
        configuration.setString("rest.bind-port", "0");
        configuration.setString("taskmanager.memory.managed.size", "64m");
        configuration.setString("taskmanager.memory.network.max", "64m");
        MiniCluster cluster = new MiniCluster(new MiniClusterConfiguration.Builder()
            .setConfiguration(configuration).setNumTaskManagers(1).setNumSlotsPerTaskManager(2).build());
        cluster.start();
        Configuration client = new Configuration();
        client.setString("execution.target", "remote");
        client.setString("execution.attached", "true");
        client.setString("rest.address", "localhost");
        client.setString("rest.port", String.valueOf(cluster.getRestAddress().get().getPort()));
        client.setString("parallelism.default", "1");
        client.setString("execution.runtime-mode", "batch");
        client.setString("table.local-time-zone", "UTC");
        client.setString("restart-strategy.type", "none");
        tables = TableEnvironment.create(EnvironmentSettings.newInstance().inBatchMode().withConfiguration(client).build());
        tables.executeSql(Files.readString(Path.of(files[0])));
        groups = files.length > 3 ? " " + files[3] : "";
        rows = evaluate(List.of("CAST(rid AS STRING)"), "").size();
        List<Map<String, Object>> results = new ArrayList<>();
        List<Map<String, Object>> accepted = new ArrayList<>();
        for (Object expression : JSON.readValue(Path.of(files[1]).toFile(), List.class)) {
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("expression", expression);
            results.add(result);
            try {
                Table table = tables.sqlQuery("SELECT " + expression + " AS v FROM inputs" + groups);
                result.put("type", table.getResolvedSchema().getColumnDataTypes().get(0).getLogicalType().asSummaryString());
                accepted.add(result);
            } catch (Throwable refusal) {
                result.put("refused", reason(refusal));
            }
        }
        int size = AT_ONCE;  // fewer where they fail
        for (int at = 0; at < accepted.size(); ) {
            int end = Math.min(accepted.size(), at + size);
            size = play(accepted.subList(at, end)) ? Math.min(AT_ONCE, size * 2) : Math.max(1, size / 2);
            at = end;
            System.out.println(at + " of " + accepted.size());
        }
        try (BufferedWriter writer = Files.newBufferedWriter(Path.of(files[2]))) {
            for (Map<String, Object> result : results) {
                writer.write(JSON.writeValueAsString(result));
                writer.newLine();
            }
        }
        System.exit(0);
    }

    /** Evaluates expressions in one job; where it fails, in smaller ones, at last one by row. False if it failed. */
    private static boolean play(List<Map<String, Object>> part) {
        List<String> expressions = part.stream().map(r -> (String) r.get("expression")).toList();
        try {
            List<List<Object>> values = evaluate(expressions, "");
            for (int n = 0; n < part.size(); n++) {
                List<Object> of = new ArrayList<>();
                for (List<Object> row : values) {
                    of.add(row.get(n));
                }
                part.get(n).put("values", of);
            }
            return true;
        } catch (Throwable failure) {
            if (part.size() > 1) {
                play(part.subList(0, part.size() / 2));
                play(part.subList(part.size() / 2, part.size()));
            } else if (!((String) part.get(0).get("expression")).matches("(?s).*\\bc_\\w+.*")) {
                part.get(0).put("error", reason(failure));
            } else {
                Object[] of = new Object[rows];
                for (int row = 0; row < rows; row++) {
                    of[row] = byRow(expressions, row);
                }
                part.get(0).put("values", java.util.Arrays.asList(of));
            }
            return false;
        }
    }

    private static Object byRow(List<String> expression, int row) {
        try {
            return evaluate(expression, " WHERE rid = " + row).get(0).get(0);
        } catch (Throwable failure) {
            return Map.of("error", reason(failure));
        }
    }

    private static List<List<Object>> evaluate(List<String> expressions, String where) throws Exception {
        StringBuilder select = new StringBuilder("SELECT rid");
        for (int n = 0; n < expressions.size(); n++) {
            select.append(", ").append(expressions.get(n)).append(" AS v").append(n);
        }
        Map<Integer, List<Object>> found = new java.util.TreeMap<>();
        try (CloseableIterator<Row> rows = tables.executeSql(select + " FROM inputs" + where + groups).collect()) {
            while (rows.hasNext()) {
                Row row = rows.next();
                List<Object> values = new ArrayList<>();
                for (int n = 1; n < row.getArity(); n++) {
                    values.add(plain(row.getField(n)));
                }
                found.put((Integer) row.getField(0), values);
            }
        }
        return new ArrayList<>(found.values());
    }

    /** Values as JSON has them; those that it lacks, as an object with their kind. */
    private static Object plain(Object value) {
        if (value == null || value instanceof String || value instanceof Boolean) {
            return value;
        }
        if (value instanceof byte[]) {
            return Map.of("bytes", Base64.getEncoder().encodeToString((byte[]) value));
        }
        if (value instanceof java.math.BigDecimal) {
            return Map.of("decimal", ((java.math.BigDecimal) value).toPlainString());
        }
        if (value instanceof Double || value instanceof Float) {
            return Map.of("double", value.toString());
        }
        if (value instanceof Number) {
            return value;
        }
        if (value.getClass().isArray()) {
            List<Object> items = new ArrayList<>();
            for (int n = 0; n < Array.getLength(value); n++) {
                items.add(plain(Array.get(value, n)));
            }
            return Map.of("array", items);
        }
        if (value instanceof Map) {
            List<Object> items = new ArrayList<>();
            ((Map<?, ?>) value).forEach((k, v) -> items.add(java.util.Arrays.asList(plain(k), plain(v))));
            return Map.of("map", items);
        }
        if (value instanceof Row) {
            List<Object> items = new ArrayList<>();
            for (int n = 0; n < ((Row) value).getArity(); n++) {
                items.add(plain(((Row) value).getField(n)));
            }
            return Map.of("row", items);
        }
        return Map.of("time", value.toString());
    }

    private static String reason(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null && cause.getCause() != cause) {
            cause = cause.getCause();
        }
        String text = String.valueOf(cause.getMessage()).strip();
        return (cause.getClass().getSimpleName() + ": " + text.split("\n")[0]).replaceAll("\\s+", " ");
    }
}
