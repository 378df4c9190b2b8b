import java.io.BufferedWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonGenerator;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.catalog.CatalogTable;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.catalog.ResolvedCatalogTable;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.factories.SerializationFormatFactory;
import org.apache.flink.table.runtime.connector.sink.SinkRuntimeProviderContext;
import org.apache.flink.table.runtime.connector.source.ScanRuntimeProviderContext;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;
import org.apache.flink.table.types.utils.TypeConversions;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;
import org.apache.flink.util.SimpleUserCodeClassLoader;
import org.apache.flink.util.UserCodeClassLoader;

/** Decodes and encodes with Flink's formats: FlinkFormats CASES RESULTS. CASES is a JSON list; each has a format, its options,
 *  the columns of its row, documents to decode (in base64) and rows to encode. RESULTS gets a line of JSON for each case, with the
 *  rows of each document and the bytes of each row, or an error; or why Flink refuses the format for these columns. */
public class FlinkFormats {
    private static final ObjectMapper JSON = new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);
    private static final ClassLoader LOADER = FlinkFormats.class.getClassLoader();

    public static void main(String[] files) throws Exception {
        try (BufferedWriter writer = Files.newBufferedWriter(Path.of(files[1]))) {
            for (Object given : JSON.readValue(Path.of(files[0]).toFile(), List.class)) {
                Map<?, ?> asked = (Map<?, ?>) given;
                Map<String, Object> result = new LinkedHashMap<>();
                try {
                    play(asked, result);
                } catch (Throwable refusal) {
                    result.put("refused", reason(refusal));
                }
                writer.write(JSON.writeValueAsString(result));
                writer.newLine();
            }
        }
        System.exit(0);
    }

    private static void play(Map<?, ?> asked, Map<String, Object> result) throws Exception {
        List<Column> columns = new ArrayList<>();
        StringBuilder fields = new StringBuilder();
        for (Map.Entry<?, ?> column : ((Map<?, ?>) asked.get("columns")).entrySet()) {
            LogicalType type = LogicalTypeParser.parse((String) column.getValue(), LOADER);
            columns.add(Column.physical((String) column.getKey(), TypeConversions.fromLogicalToDataType(type)));
            fields.append(fields.length() == 0 ? "" : ", ").append("`").append(column.getKey()).append("` ").append(column.getValue());
        }
        LogicalType row = LogicalTypeParser.parse("ROW<" + fields + "> NOT NULL", LOADER);
        DataType type = TypeConversions.fromLogicalToDataType(row);
        Configuration options = new Configuration();
        ((Map<?, ?>) asked.get("options")).forEach((k, v) -> options.setString((String) k, (String) v));
        CatalogTable table = CatalogTable.newBuilder().schema(Schema.newBuilder().fromRowDataType(type).build()).options(Map.of()).build();
        DynamicTableFactory.Context context = new FactoryUtil.DefaultDynamicTableContext(
            ObjectIdentifier.of("c", "d", "t"), new ResolvedCatalogTable(table, ResolvedSchema.of(columns)), Map.of(),
            new Configuration(), LOADER, false);
        String format = (String) asked.get("format");
        List<Object> documents = new ArrayList<>((List<?>) asked.get("documents"));
        List<?> rows = (List<?>) asked.get("rows");
        if (!rows.isEmpty()) {
            SerializationFormatFactory factory = FactoryUtil.discoverFactory(LOADER, SerializationFormatFactory.class, format);
            // An encoder for each row: avro's JSON begins with a line break for all but the first row of an encoder.
            Supplier<SerializationSchema<RowData>> schemas = () -> (SerializationSchema<RowData>)
                factory.createEncodingFormat(context, options).createRuntimeEncoder(new SinkRuntimeProviderContext(false), type);
            List<Object> written = rows.stream().map(r -> encoded(schemas.get(), (List<?>) r, row)).toList();
            result.put("encoded", written);
            if (Boolean.TRUE.equals(asked.get("read_back"))) {
                written.stream().filter(document -> document instanceof String).forEach(documents::add);
            }
        }
        result.put("documents", documents);
        if (!documents.isEmpty()) {
            DeserializationFormatFactory factory = FactoryUtil.discoverFactory(LOADER, DeserializationFormatFactory.class, format);
            // A decoder for each document: what one leaves in the buffer of avro's would be read with the next.
            Supplier<DeserializationSchema<RowData>> schemas = () -> (DeserializationSchema<RowData>)
                factory.createDecodingFormat(context, options).createRuntimeDecoder(ScanRuntimeProviderContext.INSTANCE, type);
            result.put("decoded", documents.stream().map(d -> decoded(schemas.get(), (String) d, row)).toList());
        }
    }

    private static Object decoded(DeserializationSchema<RowData> schema, String document, LogicalType row) {
        List<Object> rows = new ArrayList<>();
        try {
            schema.open(new Opened());
            byte[] bytes = document == null ? null : Base64.getDecoder().decode(document);
            schema.deserialize(bytes, new Collector<RowData>() {
                public void collect(RowData found) {
                    if (found != null) {
                        rows.add(Arrays.asList(found.getRowKind().shortString(), plain(found, row)));
                    }
                }

                public void close() {}
            });
            return rows;
        } catch (Throwable failure) {
            return Map.of("error", reason(failure));
        }
    }

    private static Object encoded(SerializationSchema<RowData> schema, List<?> given, LogicalType type) {
        try {
            schema.open(new Opened());
            GenericRowData row = (GenericRowData) internal(given.get(1), type);
            for (RowKind kind : RowKind.values()) {
                if (kind.shortString().equals(given.get(0))) {
                    row.setRowKind(kind);
                }
            }
            byte[] bytes = schema.serialize(row);
            return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
        } catch (Throwable failure) {
            return Map.of("error", reason(failure));
        }
    }

    /** Values as JSON has them; those that it lacks, as an object with their kind. */
    private static Object plain(Object value, LogicalType type) {
        if (value == null) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case CHAR:
            case VARCHAR:
                return new String(((StringData) value).toBytes(), StandardCharsets.UTF_8);
            case BINARY:
            case VARBINARY:
                return Map.of("bytes", Base64.getEncoder().encodeToString((byte[]) value));
            case DECIMAL:
                return Map.of("decimal", ((DecimalData) value).toBigDecimal().toPlainString());
            case FLOAT:
            case DOUBLE:
                return Map.of("double", value.toString());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                TimestampData time = (TimestampData) value;
                return Map.of("ns", BigInteger.valueOf(time.getMillisecond()).multiply(BigInteger.valueOf(1_000_000))
                    .add(BigInteger.valueOf(time.getNanoOfMillisecond())));
            case ARRAY:
                return Map.of("array", items((ArrayData) value, ((ArrayType) type).getElementType()));
            case MAP:
            case MULTISET:
                List<Object> keys = items(((MapData) value).keyArray(), parts(type)[0]);
                List<Object> values = items(((MapData) value).valueArray(), parts(type)[1]);
                List<Object> pairs = new ArrayList<>();
                for (int n = 0; n < keys.size(); n++) {
                    pairs.add(Arrays.asList(keys.get(n), values.get(n)));
                }
                return Map.of("map", pairs);
            case ROW:
                Map<String, Object> fields = new LinkedHashMap<>();
                for (int n = 0; n < ((RowType) type).getFieldCount(); n++) {
                    LogicalType field = type.getChildren().get(n);
                    Object part = plain(RowData.createFieldGetter(field, n).getFieldOrNull((RowData) value), field);
                    if (part != null) {
                        fields.put(((RowType) type).getFieldNames().get(n), part);
                    }
                }
                return Map.of("row", fields);
            default:
                return value;
        }
    }

    private static List<Object> items(ArrayData values, LogicalType type) {
        List<Object> items = new ArrayList<>();
        for (int n = 0; n < values.size(); n++) {
            items.add(plain(ArrayData.createElementGetter(type).getElementOrNull(values, n), type));
        }
        return items;
    }

    /** Of keys and values; counts of a MULTISET are read as they are, also null ones, which would fail further on. */
    private static LogicalType[] parts(LogicalType type) {
        return type instanceof MapType
            ? new LogicalType[] {((MapType) type).getKeyType(), ((MapType) type).getValueType()}
            : new LogicalType[] {((MultisetType) type).getElementType(), new IntType()};
    }

    /** The other way. */
    private static Object internal(Object value, LogicalType type) {
        if (value == null) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case CHAR:
            case VARCHAR:
                return StringData.fromString((String) value);
            case BINARY:
            case VARBINARY:
                return Base64.getDecoder().decode(text(value, "bytes"));
            case TINYINT:
                return ((Number) value).byteValue();
            case SMALLINT:
                return ((Number) value).shortValue();
            case BIGINT:
                return ((Number) value).longValue();
            case FLOAT:
                return Float.valueOf(text(value, "double"));
            case DOUBLE:
                return Double.valueOf(text(value, "double"));
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return DecimalData.fromBigDecimal(new BigDecimal(text(value, "decimal")), decimal.getPrecision(), decimal.getScale());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                BigInteger million = BigInteger.valueOf(1_000_000);
                BigInteger nanos = new BigInteger(text(value, "ns"));
                int rest = nanos.mod(million).intValue();
                return TimestampData.fromEpochMillis(nanos.subtract(BigInteger.valueOf(rest)).divide(million).longValueExact(), rest);
            case ARRAY:
                return new GenericArrayData(((List<?>) part(value, "array")).stream()
                    .map(item -> internal(item, ((ArrayType) type).getElementType())).toArray());
            case MAP:
            case MULTISET:
                Map<Object, Object> entries = new LinkedHashMap<>();
                for (Object pair : (List<?>) part(value, "map")) {
                    entries.put(internal(((List<?>) pair).get(0), parts(type)[0]), internal(((List<?>) pair).get(1), parts(type)[1]));
                }
                return new GenericMapData(entries);
            case ROW:
                List<String> names = ((RowType) type).getFieldNames();
                GenericRowData row = new GenericRowData(names.size());
                for (int n = 0; n < names.size(); n++) {
                    row.setField(n, internal(((Map<?, ?>) part(value, "row")).get(names.get(n)), type.getChildren().get(n)));
                }
                return row;
            default:
                return value;
        }
    }

    private static Object part(Object value, String kind) {
        return ((Map<?, ?>) value).get(kind);
    }

    private static String text(Object value, String kind) {
        return part(value, kind).toString();
    }

    private static String reason(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null && cause.getCause() != cause) {
            cause = cause.getCause();
        }
        return cause.getClass().getSimpleName();
    }

    /** What a format is opened with, to read and to write. */
    private static class Opened
        implements DeserializationSchema.InitializationContext, SerializationSchema.InitializationContext {
        public MetricGroup getMetricGroup() {
            return new UnregisteredMetricsGroup();
        }

        public UserCodeClassLoader getUserCodeClassLoader() {
            return SimpleUserCodeClassLoader.create(LOADER);
        }
    }
}
