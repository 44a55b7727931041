# The program in a container that needs no root: docker build -t inftda . && docker run --rm inftda
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt hatch_build.py README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/inftda && /opt/inftda/bin/pip install --no-cache-dir -c constraints.txt '.[xlsx]'

FROM python:3.12-slim
COPY --from=build /opt/inftda /opt/inftda
ENV PATH=/opt/inftda/bin:$PATH
RUN useradd --create-home --uid 10001 inftda
USER 10001
WORKDIR /home/inftda
# Compile what a release calls: machine code goes into the cache folder of this user.
RUN inftda demo --out /tmp/demo && rm -rf /tmp/demo
ENTRYPOINT ["inftda"]
CMD ["demo", "--out", "demo"]
