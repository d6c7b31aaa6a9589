import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, startQuiet } from "../processes.ts";
import { debianProgram, run } from "./install.ts";
import { BODY_BYTES, PATH, type Peer, relays } from "./peer.ts";

/** The least that a proxy does. */
export const nginx: Peer = {
  name: "nginx",
  async install(cache) {
    const { program, env } = await debianProgram(cache, "nginx", ["nginx"]);
    return {
      version: /nginx\/(\S+)/.exec(await run([program, "-v"], ".", env))![1]!,
      settings:
        "one worker, keep-alive to the host, neither requests nor answers buffered, no access log; relays only",
      async start(hostPort, folder) {
        const port = freePort();
        const file = join(folder, "nginx.conf");
        writeFileSync(file, configuration(port, hostPort, folder));
        return {
          process: await startQuiet({ command: [program, "-c", file, "-p", folder], port, env }),
          target: { port, path: PATH, headers: {} },
          reaches: relays({ port, path: PATH, headers: {} }),
          prefix: "",
          refusesLarge: true,
        };
      },
    };
  },
};

const configuration = (port: number, hostPort: number, folder: string): string => `
daemon off;
${process.getuid?.() === 0 ? "user root;" : ""}
worker_processes 1;
worker_rlimit_nofile 65536;
error_log ${folder}/nginx.log crit;
pid ${folder}/nginx.pid;
events { worker_connections 32768; }
http {
  access_log off;
  client_body_temp_path ${folder}; proxy_temp_path ${folder};
  fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  keepalive_requests 100000000;
  client_max_body_size ${BODY_BYTES};
  upstream host { server 127.0.0.1:${hostPort}; keepalive 1024; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://host;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 600s;
    }
  }
}
`;
