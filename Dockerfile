# What the pods of Spark on Kubernetes run: Spark with Python, the bridge with its packages and jars, and jobs/.
#   make wheel && docker build --tag registry/bridge:1 .
# The tag of Spark is the version of pyspark in constraints.txt. Add your pipeline files to conf/, or mount them.
FROM apache/spark:4.2.0-scala2.13-java17-python3-ubuntu

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
USER 0
ENV BRIDGE_HOME=/opt/bridge/home
WORKDIR /opt/bridge

COPY constraints.txt dist/changelog_bridge-*.whl /opt/bridge/
# pyspark is installed to fetch the jars that fit it, and removed: the image has Spark already.
RUN PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir --constraint constraints.txt \
      "$(printf '%s[spark]' changelog_bridge-*.whl)" \
 && python3 -c 'from bridge.jars import fetch, spark_coordinates; fetch("spark", spark_coordinates())' \
 && cp home/jars/spark-*/*.jar "${SPARK_HOME}/jars/" \
 && PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip uninstall --yes pyspark py4j \
 && rm -rf home changelog_bridge-*.whl constraints.txt \
 && mkdir home \
 && chown 185 home

COPY jobs /opt/bridge/jobs
COPY conf /opt/bridge/conf
COPY expectations /opt/bridge/expectations

USER 185
