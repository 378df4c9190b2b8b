-- Counts the views and the visitors of each region: bridge run conf/pageviews.sql
-- KAFKA is the broker; the state is kept in the folder bridge-state beside this file, or where BRIDGE_STATE says.
SET 'bridge.state' = '${env:BRIDGE_STATE:bridge-state}';

CREATE TABLE pageviews (
  user_id BIGINT,
  page_id BIGINT,
  viewtime TIMESTAMP(3),
  user_region STRING,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'pageviews',
  'properties.bootstrap.servers' = '${env:KAFKA:localhost:9092}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE pageviews_per_region (
  user_region STRING,
  pv BIGINT,
  uv BIGINT,
  PRIMARY KEY (user_region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'pageviews_per_region',
  'properties.bootstrap.servers' = '${env:KAFKA:localhost:9092}',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO pageviews_per_region
SELECT user_region, COUNT(*), COUNT(DISTINCT user_id)
FROM pageviews
GROUP BY user_region;
