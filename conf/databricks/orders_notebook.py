# Databricks notebook source
# MAGIC %md
# MAGIC # Orders: topic to table, table to topic, check
# MAGIC Run it on compute with dedicated access mode that has the wheel of the bridge. Each cell can be run again: what
# MAGIC is done is not done twice.

# COMMAND ----------

dbutils.widgets.text("kafka", "", "Brokers, host:port")
dbutils.widgets.text("catalog", "main", "Catalog of the tables")
dbutils.widgets.text("schema", "sales_dev", "Schema of the tables; it must exist")
dbutils.widgets.text("folder", ".", "Folder of orders.yaml and orders_publish.yaml")

# COMMAND ----------

from os import environ

from bridge import check, ingest, load, publish

given = {**environ, **{name.upper(): dbutils.widgets.get(name) for name in ("kafka", "catalog", "schema")}}
folder = dbutils.widgets.get("folder")
orders = load(f"{folder}/orders.yaml", environ=given)
orders_out = load(f"{folder}/orders_publish.yaml", environ=given)

# COMMAND ----------

ingested = ingest(spark, orders, listener=lambda report: print(report.as_dict()))
print(ingested)

# COMMAND ----------

published = publish(spark, orders_out, listener=lambda report: print(report.as_dict()))
print(published)

# COMMAND ----------

checked = check(spark, orders)
print(checked.verdict.state, checked.report)
with open(checked.report, encoding="utf-8") as report:
    displayHTML(report.read())

# COMMAND ----------

display(spark.table(str(orders.delta)))
