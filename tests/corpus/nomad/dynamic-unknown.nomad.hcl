variable "shards" { type = list(string) }
job "unknown" {
  group "g" {
    dynamic "task" {
      for_each = var.shards
      labels   = ["s-${task.value}"]
      content {
        driver = "exec"
        config { command = "/bin/index" }
        resources { memory = 300 }
      }
    }
  }
}
