variable "env" { default = "prod" }
job "cond" {
  type = var.env == "prod" ? "service" : "batch"
  group "g" {
    count = var.env == "prod" && !false ? 4 : 1
    task "t" {
      driver = "exec"
      config { command = "/bin/app" }
      env {
        MODE  = "%{ if var.env == "prod" }careful%{ else }loose%{ endif }"
        HOSTS = "%{ for i in ["a", "b"] ~} ${i}.example,%{ endfor ~} end"
      }
      resources {
        memory = (
          var.env == "prod"
          ? 1024 * 2
          : 128
        )
      }
    }
  }
}
