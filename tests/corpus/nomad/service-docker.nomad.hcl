# A service with two tasks of one group.
job "shop" {
  datacenters = ["north", "south"]
  namespace   = "retail"
  type        = "service"
  priority    = 70

  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  group "front" {
    count = 3

    network {
      mode = "bridge"
      port "web" { to = 8080 }
    }

    task "nginx" {
      driver = "docker"
      config {
        image = "registry.example/nginx:1.27"
        ports = ["web"]
        volumes = [
          "local/site.conf:/etc/nginx/conf.d/site.conf", // rendered below
        ]
      }
      template {
        data        = <<EOT
server {
  listen {{ env "NOMAD_PORT_web" }};
  location / { return 200 "ok"; }
}
EOT
        destination = "local/site.conf"
      }
      resources {
        cpu    = 300 # MHz
        memory = 128
      }
    }

    task "app" {
      driver = "docker"
      config {
        image   = "registry.example/shop:4.2"
        command = "serve"
        args    = ["--bind", "0.0.0.0:${NOMAD_PORT_web}", "--workers", 4]
      }
      env {
        LOG_LEVEL = "info"
        DB_URL    = "${NOMAD_META_db}"
        RETRIES   = 5
      }
      resources {
        cpu        = 1500
        memory     = 768
        memory_max = 1024
      }
    }
  }
}
