job "shards" {
  type = "batch"
  group "g" {
    dynamic "task" {
      for_each = ["alpha", "beta", "gamma"]
      iterator = shard
      labels   = [shard.value]
      content {
        driver = "exec"
        config {
          command = "/bin/index"
          args    = ["${shard.key}", shard.value]
        }
        dynamic "template" {
          for_each = shard.key == 0 ? [1] : []
          content {
            data        = "x"
            destination = "local/first"
          }
        }
        resources {
          cores  = 1
          memory = 100 + 50 * shard.key
        }
      }
    }
  }
}
